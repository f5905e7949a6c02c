"""`forge cache`: the compiled objects that all projects share."""

from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.commands._options import JsonOption

if TYPE_CHECKING:
    from tflm_forge.objects import CacheUse

app = typer.Typer(
    name="cache", help="Show and prune the compiled objects that all projects share.\n\nExample: forge cache show"
)

_MEGABYTE = 1_000_000


@app.command()
def show(as_json: JsonOption = False) -> None:
    """Show where the cache is and what it takes.

    Example: forge cache show
    """
    from tflm_forge.objects import measure_cache

    _report(measure_cache(), as_json=as_json)


@app.command()
def prune(
    keep: Annotated[int, typer.Option("--keep", min=0, metavar="MB", help="Megabytes to keep.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Remove the objects not used for longest; without --keep, all of them.

    Example: forge cache prune --keep 500
    """
    from tflm_forge.objects import prune_cache

    _report(prune_cache(keep_bytes=keep * _MEGABYTE), as_json=as_json)


def _report(use: "CacheUse", *, as_json: bool) -> None:
    from tflm_forge.console import show_json, show_text

    if as_json:
        show_json({"folder": str(use.folder), "files": use.files, "bytes": use.bytes})
    else:
        show_text(f"{use.folder}: {use.files:,} files, {use.bytes / _MEGABYTE:,.1f} MB")
