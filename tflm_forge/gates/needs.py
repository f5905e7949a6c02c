"""What a model needs of the firmware that is to run it."""

from collections.abc import Mapping
from dataclasses import dataclass

from tflm_forge.doctor import Finding, Subject, diagnose
from tflm_forge.model import Model, OpUse, op_set
from tflm_forge.model.resources import count_resource_variables
from tflm_forge.ops.hash import op_hash

COMPRESSED = "compressed-constants"
"""Id of the finding about constants that TFLM's compression tool packed."""


@dataclass(frozen=True, kw_only=True)
class ArenaNeed:
    """How large a tensor arena a model needs.

    Attributes:
        bytes: the size.
        how: how it is known ("measured on mps2-an386: ...", "estimated").
        is_measured: whether the very kernels of the firmware were run with it; else it is an estimate.
        is_moot: whether the firmware's runtime does not run the model at all, so that the number says nothing of it.
    """

    bytes: int
    how: str
    is_measured: bool
    is_moot: bool = False


@dataclass(frozen=True, kw_only=True)
class ModelNeeds:
    """What a model needs, read from its file alone.

    Attributes:
        file: the file's name.
        sha256: digest of its bytes, in hex.
        size_bytes: bytes of flash that the model takes.
        schema_version: version of the TFLite schema it is written in.
        ops: its op set.
        op_hash: of that op set.
        resource_variables: how many resource variables it names.
        is_compressed: whether the runtime has to unpack its constants.
        problems: what no firmware can run, each with layer and remedy.
    """

    file: str
    sha256: str
    size_bytes: int
    schema_version: int
    ops: tuple[OpUse, ...]
    op_hash: int
    resource_variables: int
    is_compressed: bool
    problems: tuple[Finding, ...]


def find_needs(model: Model, silence: Mapping[str, str] | None = None) -> ModelNeeds:
    """Return what a model needs of its firmware.

    Args:
        model: the model.
        silence: the doctor's rules that do not stand, with the reasons.
    """
    ops = op_set(model)
    errors = [finding for finding in diagnose(Subject(model=model), silence) if finding.stands]
    return ModelNeeds(
        file=model.name,
        sha256=model.sha256,
        size_bytes=len(model.data),
        schema_version=model.schema_version,
        ops=ops,
        op_hash=op_hash(ops),
        resource_variables=count_resource_variables(model),
        is_compressed=any(finding.id == COMPRESSED for finding in errors),
        problems=tuple(finding for finding in errors if finding.id not in (COMPRESSED, "unknown-op")),
    )
