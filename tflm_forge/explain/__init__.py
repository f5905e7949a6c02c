"""Reads what a device, a build or a converter said, and names the causes that forge knows."""

from tflm_forge.explain.causes import Cause, Explanation, explain_text
from tflm_forge.explain.patterns import Pattern, load_patterns

__all__ = ["Cause", "Explanation", "Pattern", "explain_text", "load_patterns"]
