# /// script
# requires-python = ">=3.11"
# dependencies = ["tensorflow==2.21.0", "keras==3.15.1", "numpy==2.4.6"]
# ///
"""Train the sine example and write `sine.tflite` and `sine_test.npz` beside this script.

Needs TensorFlow, Keras and NumPy in the versions listed above (forge itself never needs the first two):

    uv run train.py        # or: pip install the three packages in a fresh venv, then python train.py

The network learns y = sin(x) for x in 0..2 pi from 4,096 points drawn at random with a fixed seed. They are
drawn from a range a little wider than that, so that the fit holds to both ends.
"""

import os
from pathlib import Path

# TensorFlow reads these when it is imported: the same bytes on each run, and no start-up chatter.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import keras
import numpy as np
import tensorflow as tf

FOLDER = Path(__file__).resolve().parent
SEED = 8
TURN = 2 * np.pi
MARGIN = 0.5
TRAINING_SAMPLES = 4096
SAVED_SAMPLES = 100
UNITS = 24
EPOCHS = 300
BATCH = 128


def build_network(batch: int | None = None) -> keras.Model:
    """Return the network: two hidden layers and one output, all of them FULLY_CONNECTED in the .tflite."""
    layers = keras.layers
    x = keras.Input((1,), batch_size=batch, name="x")
    # Small weights keep the hidden values in a narrow range, which int8 then resolves finely.
    small = keras.regularizers.L2(1e-5)
    hidden = layers.Dense(UNITS, activation="relu", kernel_regularizer=small, name="hidden_1")(x)
    hidden = layers.Dense(UNITS, activation="relu", kernel_regularizer=small, name="hidden_2")(hidden)
    return keras.Model(x, layers.Dense(1, kernel_regularizer=small, name="y")(hidden), name="sine")


def train(x: np.ndarray) -> keras.Model:
    """Return the network trained on sin(x), for a fixed number of epochs."""
    network = build_network()
    steps = EPOCHS * -(-len(x) // BATCH)
    rate = keras.optimizers.schedules.CosineDecay(1e-2, decay_steps=steps)
    network.compile(keras.optimizers.Adam(rate), loss="mse")
    network.fit(x, np.sin(x), batch_size=BATCH, epochs=EPOCHS, verbose=0)
    return network


def convert(network: keras.Model, calibration: np.ndarray) -> bytes:
    """Return the network as a full-integer .tflite with int8 input and output and a batch size of 1."""
    fixed = build_network(batch=1)
    fixed.set_weights(network.get_weights())
    converter = tf.lite.TFLiteConverter.from_keras_model(fixed)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([x[np.newaxis]] for x in calibration)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    # One scale for all weights of a dense layer: with a scale per channel, many TFLM versions compute
    # FULLY_CONNECTED wrongly.
    converter._experimental_disable_per_channel_quantization_for_dense_layers = True
    return converter.convert()


def predict(interpreter: tf.lite.Interpreter, inputs: np.ndarray) -> np.ndarray:
    """Return the model's answer, as a real number, to each of the quantized `inputs`."""
    interpreter.allocate_tensors()
    output = interpreter.get_output_details()[0]
    scale, zero_point = output["quantization"]
    answers = []
    for sample in inputs:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample[np.newaxis])
        interpreter.invoke()
        answers.append((interpreter.get_tensor(output["index"])[0].astype(np.float64) - zero_point) * scale)
    return np.array(answers)


def main() -> None:
    """Train, convert, save both files and print the error against sin(x)."""
    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    x = np.random.default_rng(SEED).uniform(-MARGIN, TURN + MARGIN, (TRAINING_SAMPLES, 1))
    network = train(x.astype(np.float32))
    calibration = np.linspace(0, TURN, 257, dtype=np.float32)[:, np.newaxis]
    model = convert(network, calibration)
    (FOLDER / "sine.tflite").write_bytes(model)

    # Evenly spaced over all 256 values of the int8 input, both ends included.
    inputs = np.round(np.linspace(-128, 127, SAVED_SAMPLES)).astype(np.int8)[:, np.newaxis]
    np.savez_compressed(FOLDER / "sine_test.npz", input_0=inputs)

    interpreter = tf.lite.Interpreter(model_content=model)
    scale, zero_point = interpreter.get_input_details()[0]["quantization"]
    x_test = (inputs.astype(np.float64) - zero_point) * scale
    error_float = np.abs(network.predict(x_test.astype(np.float32), verbose=0) - np.sin(x_test))
    error_int8 = np.abs(predict(interpreter, inputs) - np.sin(x_test))
    print(f"sine.tflite: {len(model)} bytes")
    print(f"float: largest error {error_float.max():.4f}, mean {error_float.mean():.4f}")
    print(f"int8:  largest error {error_int8.max():.4f}, mean {error_int8.mean():.4f}")


if __name__ == "__main__":
    main()
