"""Reads .tflite files: bytes in, values out; `writing` makes small ones. Nothing here runs or prints anything."""

from tflm_forge.model.loading import MAX_FILE_BYTES, load_model
from tflm_forge.model.opset import LEFT_OUT, OpUse, op_set, union_op_set
from tflm_forge.model.reading import read_model
from tflm_forge.model.records import (
    Buffer,
    Metadata,
    Model,
    Opcode,
    Operator,
    Quantization,
    Signature,
    Subgraph,
    Tensor,
)
from tflm_forge.model.schema import CUSTOM_CODE, enum_name, enum_value, op_name, type_bits

__all__ = [
    "CUSTOM_CODE",
    "LEFT_OUT",
    "MAX_FILE_BYTES",
    "Buffer",
    "Metadata",
    "Model",
    "OpUse",
    "Opcode",
    "Operator",
    "Quantization",
    "Signature",
    "Subgraph",
    "Tensor",
    "enum_name",
    "enum_value",
    "load_model",
    "op_name",
    "op_set",
    "read_model",
    "type_bits",
    "union_op_set",
]
