"""ELF -> where every byte of its flash and RAM went."""

from tflm_forge.size.attribute import attribute
from tflm_forge.size.records import GROUPS, Attribution, Group, Piece, Row, SectionSize

__all__ = ["GROUPS", "Attribution", "Group", "Piece", "Row", "SectionSize", "attribute"]
