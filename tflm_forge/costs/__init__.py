"""What each operator of a runtime costs in flash: tables that forge ships, and those measured on this machine."""

from tflm_forge.costs.records import CostTable, OpCost
from tflm_forge.costs.tables import find_table, table_path

__all__ = ["CostTable", "OpCost", "find_table", "table_path"]
