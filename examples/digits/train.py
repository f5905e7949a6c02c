# /// script
# requires-python = ">=3.11"
# dependencies = ["tensorflow==2.21.0", "keras==3.15.1", "scikit-learn==1.9.1", "numpy==2.4.6"]
# ///
"""Train the digits example and write `digits.tflite` and `digits_test.npz` beside this script.

Needs TensorFlow, Keras, scikit-learn and NumPy in the versions listed above (forge itself never needs the
first three):

    uv run train.py        # or: pip install the four packages in a fresh venv, then python train.py

The 1,797 images are split once, with a fixed seed and by class, into 1,437 to train on and 360 held back.
The held-back images take no part in training or in calibration: they give the accuracy that is printed, and
the first 100 of them are saved.
"""

import os
from pathlib import Path

# TensorFlow reads these when it is imported: the same bytes on each run, and no start-up chatter.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

FOLDER = Path(__file__).resolve().parent
SEED = 8
HELD_BACK = 360
SAVED_SAMPLES = 100
EPOCHS = 80
BATCH = 32
CALIBRATION_SAMPLES = 300


def load_split() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training images, held-back images, and the labels of each; images are [n, 8, 8, 1] in 0..1."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., np.newaxis]
    return train_test_split(images, digits.target, test_size=HELD_BACK, stratify=digits.target, random_state=SEED)


def build_network(batch: int | None = None) -> keras.Model:
    """Return the network: a convolution, two depthwise-separable blocks each with a pool, and a classifier.

    The layers' names become the tensors' names in the .tflite, so they are what reports call the layers.
    """
    layers = keras.layers

    def normalized(convolution: keras.Layer, x: keras.KerasTensor) -> keras.KerasTensor:
        x = layers.BatchNormalization(momentum=0.9, name=f"{convolution.name}_norm")(convolution(x))
        return layers.ReLU(name=f"{convolution.name}_relu")(x)

    image = keras.Input((8, 8, 1), batch_size=batch, name="image")
    x = normalized(layers.Conv2D(12, 3, padding="same", use_bias=False, name="conv"), image)
    x = normalized(layers.DepthwiseConv2D(3, padding="same", use_bias=False, name="depthwise_1"), x)
    x = normalized(layers.Conv2D(24, 1, use_bias=False, name="pointwise_1"), x)
    x = layers.MaxPooling2D(2, name="pool_1")(x)
    x = normalized(layers.DepthwiseConv2D(3, padding="same", use_bias=False, name="depthwise_2"), x)
    x = normalized(layers.Conv2D(40, 1, use_bias=False, name="pointwise_2"), x)
    x = layers.AveragePooling2D(2, name="pool_2")(x)
    x = layers.Dropout(0.3)(layers.Flatten(name="flatten")(x))
    return keras.Model(image, layers.Dense(10, activation="softmax", name="digit")(x), name="digits")


def train(images: np.ndarray, labels: np.ndarray) -> keras.Model:
    """Return the network trained on all of `images`, for a fixed number of epochs."""
    network = build_network()
    steps = EPOCHS * -(-len(images) // BATCH)
    rate = keras.optimizers.schedules.CosineDecay(4e-3, decay_steps=steps)
    network.compile(keras.optimizers.Adam(rate), loss="sparse_categorical_crossentropy")
    network.fit(images, labels, batch_size=BATCH, epochs=EPOCHS, verbose=0)
    return network


def convert(network: keras.Model, calibration: np.ndarray) -> bytes:
    """Return the network as a full-integer .tflite with int8 input and output and a batch size of 1.

    A fixed batch makes the shape of RESHAPE a constant; with a free one the converter computes it at run time
    with SHAPE, STRIDED_SLICE and PACK.
    """
    fixed = build_network(batch=1)
    fixed.set_weights(network.get_weights())
    converter = tf.lite.TFLiteConverter.from_keras_model(fixed)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([image[np.newaxis]] for image in calibration)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    # One scale for all weights of a dense layer: with a scale per channel, many TFLM versions compute
    # FULLY_CONNECTED wrongly.
    converter._experimental_disable_per_channel_quantization_for_dense_layers = True
    return converter.convert()


def quantize(images: np.ndarray, interpreter: tf.lite.Interpreter) -> np.ndarray:
    """Return `images` as the int8 values the model's input tensor takes."""
    scale, zero_point = interpreter.get_input_details()[0]["quantization"]
    return np.clip(np.round(images / scale) + zero_point, -128, 127).astype(np.int8)


def classify(interpreter: tf.lite.Interpreter, inputs: np.ndarray) -> np.ndarray:
    """Return the class the model gives to each of the quantized `inputs`."""
    interpreter.allocate_tensors()
    input_index = interpreter.get_input_details()[0]["index"]
    output_index = interpreter.get_output_details()[0]["index"]
    classes = []
    for sample in inputs:
        interpreter.set_tensor(input_index, sample[np.newaxis])
        interpreter.invoke()
        classes.append(int(interpreter.get_tensor(output_index).argmax()))
    return np.array(classes)


def main() -> None:
    """Train, convert, save both files and print the accuracy on the held-back images."""
    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    train_images, test_images, train_labels, test_labels = load_split()
    network = train(train_images, train_labels)
    model = convert(network, train_images[:CALIBRATION_SAMPLES])
    (FOLDER / "digits.tflite").write_bytes(model)

    interpreter = tf.lite.Interpreter(model_content=model)
    inputs = quantize(test_images, interpreter)
    np.savez_compressed(
        FOLDER / "digits_test.npz",
        input_0=inputs[:SAVED_SAMPLES],
        labels=test_labels[:SAVED_SAMPLES].astype(np.int64),
    )
    right_float = network.predict(test_images, verbose=0).argmax(axis=1) == test_labels
    right_int8 = classify(interpreter, inputs) == test_labels
    print(f"digits.tflite: {len(model)} bytes")
    print(f"float: {right_float.sum()} of {len(test_labels)} held-back images right")
    print(f"int8:  {right_int8.sum()} of {len(test_labels)} held-back images right")
    print(f"int8:  {right_int8[:SAVED_SAMPLES].sum()} of the {SAVED_SAMPLES} saved images right")


if __name__ == "__main__":
    main()
