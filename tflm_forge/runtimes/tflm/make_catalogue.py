"""Makes catalogue.json, the shipped catalogue of the pinned commit, from the installed tree.

For developers, when the pinned commit moves (then read versions.toml against the new kernels, too):

    forge runtime install tflm && python -m tflm_forge.runtimes.tflm.make_catalogue
"""

import json

from tflm_forge.errors import UsageError
from tflm_forge.runtimes.tflm.install import find_installed
from tflm_forge.runtimes.tflm.op_table import SHIPPED
from tflm_forge.runtimes.tflm.pins import TFLM_COMMIT
from tflm_forge.runtimes.tflm.reading import read_tree


def make_catalogue() -> str:
    """Return the text of catalogue.json.

    Raises:
        UsageError: the pinned commit is not installed.
    """
    installed = find_installed()
    if installed is None or installed.version != TFLM_COMMIT:
        raise UsageError(f"TFLM {TFLM_COMMIT} is not the tree in use", hint="forge runtime install tflm")
    return json.dumps(read_tree(installed.tree()), indent=1) + "\n"


def main() -> None:
    """Write catalogue.json beside this module."""
    SHIPPED.write_text(make_catalogue(), encoding="utf-8")


if __name__ == "__main__":
    main()
