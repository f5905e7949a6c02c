"""The operator manifest ops.manifest.yaml: what a firmware can run, in a form made for version control."""

from tflm_forge.manifest.making import is_same_firmware, keep_measured, make_manifest
from tflm_forge.manifest.reading import parse_manifest, read_build, read_manifest
from tflm_forge.manifest.record import (
    FORMAT,
    MANIFEST_NAME,
    BuildFacts,
    Manifest,
    ManifestArena,
    ManifestBuild,
    ManifestFlash,
    ManifestModel,
    ManifestOp,
    ManifestRuntime,
    ModelOp,
)
from tflm_forge.manifest.rendering import render_embedded, render_manifest

__all__ = [
    "FORMAT",
    "MANIFEST_NAME",
    "BuildFacts",
    "Manifest",
    "ManifestArena",
    "ManifestBuild",
    "ManifestFlash",
    "ManifestModel",
    "ManifestOp",
    "ManifestRuntime",
    "ModelOp",
    "is_same_firmware",
    "keep_measured",
    "make_manifest",
    "parse_manifest",
    "read_build",
    "read_manifest",
    "render_embedded",
    "render_manifest",
]
