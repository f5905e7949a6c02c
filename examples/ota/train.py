# /// script
# requires-python = ">=3.11"
# dependencies = ["tensorflow==2.21.0", "keras==3.15.1", "numpy==2.4.6"]
# ///
"""Train the four models of the OTA example and write them beside this script.

Needs TensorFlow, Keras and NumPy in the versions listed above (forge itself never needs the first two):

    uv run train.py        # or: pip install the three packages in a fresh venv, then python train.py

All of them tell a sine, a square and a sawtooth wave from 32 samples with a random phase and noise, and are trained on
computed waves with a fixed seed:

    fielded.tflite     what the devices have
    retrained.tflite   the same network, trained on noisier waves: other weights, the same operators
    deeper.tflite      a branch around a layer: two operators more, ADD and RESHAPE, and a larger arena
    erf.tflite         its author used tf.math.erf, which the converter passes on as a TensorFlow operator
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
SEED = 12
SAMPLES = 32
TURNS = 2.0
KINDS = ("sine", "square", "sawtooth")
TRAINING_WAVES, TEST_WAVES = 3000, 600
EPOCHS = 20
BATCH = 64


def make_waves(count: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return waves of shape (count, SAMPLES) within about -1 to 1, and the number of the kind of each."""
    draw = np.random.default_rng(seed)
    kinds = draw.integers(0, len(KINDS), count)
    turns = np.linspace(0, TURNS, SAMPLES, endpoint=False) + draw.uniform(0, 1, (count, 1))
    sine = np.sin(2 * np.pi * turns)
    waves = np.stack([sine, np.sign(sine), 2 * (turns % 1) - 1])[kinds, np.arange(count)]
    return (waves + draw.normal(0, noise, waves.shape)).astype(np.float32), kinds


def build_network(kind: str, batch: int | None = None) -> keras.Model:
    """Return one of the networks."""
    layers = keras.layers
    x = keras.Input((SAMPLES,), batch_size=batch, name="wave")
    hidden = layers.Dense(16, activation="relu", name="hidden_1")(x)
    if kind == "deeper":
        hidden = layers.Dense(48, activation="relu", name="wide")(hidden)
        hidden = layers.Add(name="around")([hidden, layers.Dense(48, activation="relu", name="hidden_2")(hidden)])
    if kind == "erf":
        hidden = tf.keras.layers.Lambda(tf.math.erf, output_shape=(16,), name="erf")(hidden)
    return keras.Model(x, layers.Dense(len(KINDS), activation="softmax", name="kind")(hidden), name=kind)


def train(kind: str, noise: float) -> keras.Model:
    """Return a network trained for a fixed number of epochs."""
    keras.utils.set_random_seed(SEED)
    network = build_network(kind)
    waves, kinds = make_waves(TRAINING_WAVES, noise, SEED)
    network.compile(keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy")
    network.fit(waves, kinds, batch_size=BATCH, epochs=EPOCHS, verbose=0)
    return network


def convert(network: keras.Model, kind: str, calibration: np.ndarray) -> bytes:
    """Return a full-integer .tflite with int8 input and output and a batch size of 1."""
    fixed = build_network(kind, batch=1)
    fixed.set_weights(network.get_weights())
    converter = tf.lite.TFLiteConverter.from_keras_model(fixed)
    if kind == "erf":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
        return converter.convert()
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([wave[np.newaxis]] for wave in calibration)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    # One scale for all weights of a dense layer: with a scale per channel, many TFLM versions compute
    # FULLY_CONNECTED wrongly.
    converter._experimental_disable_per_channel_quantization_for_dense_layers = True
    return converter.convert()


def main() -> None:
    """Train, convert and save all four, and print how often each network is right."""
    tf.config.experimental.enable_op_determinism()
    test_waves, test_kinds = make_waves(TEST_WAVES, noise=0.3, seed=SEED + 1)
    for name, kind, noise in (
        ("fielded", "fielded", 0.05),
        ("retrained", "fielded", 0.3),
        ("deeper", "deeper", 0.3),
        ("erf", "erf", 0.3),
    ):
        network = train(kind, noise)
        model = convert(network, kind, make_waves(200, noise, SEED + 2)[0])
        (FOLDER / f"{name}.tflite").write_bytes(model)
        right = np.mean(network.predict(test_waves, verbose=0).argmax(axis=1) == test_kinds)
        print(f"{name}.tflite: {len(model)} bytes, {right:.1%} of {TEST_WAVES} noisy waves (as float)")


if __name__ == "__main__":
    main()
