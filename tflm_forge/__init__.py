"""forge: turns a .tflite model into TensorFlow Lite Micro firmware that is known to run it."""

__version__ = "0.1.0"
