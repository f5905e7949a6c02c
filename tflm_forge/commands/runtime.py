"""`forge runtime`: get, list, show and remove the TFLM trees that firmware is built with."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tflm_forge.commands._options import JsonOption

if TYPE_CHECKING:
    from tflm_forge.runtimes.tflm.install import Installed

app = typer.Typer(
    name="runtime",
    help="Get, list, show and remove runtimes.\n\nExample: forge runtime install tflm",
    no_args_is_help=True,
)

_NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of an installed tree, or a commit's first digits.")
]


@app.command("list")
def list_runtimes(as_json: JsonOption = False) -> None:
    """List the runtimes on this machine; the one that builds use by default is marked.

    Example: forge runtime list
    """
    from tflm_forge import __version__
    from tflm_forge.console import show_json, show_table
    from tflm_forge.runtimes import default_runtime
    from tflm_forge.runtimes.tflm.install import find_installed, list_installed

    default = default_runtime()
    current = find_installed()
    rows = [("bundled", "bundled", __version__, "", default == "bundled")]
    for tree in list_installed():
        used = default == "tflm" and current is not None and tree.name == current.name
        rows.append(("tflm", tree.name, tree.version, tree.in_place or str(tree.folder), used))
    if as_json:
        show_json(
            [
                {"runtime": runtime, "name": name, "version": version, "folder": folder, "default": used}
                for runtime, name, version, folder, used in rows
            ]
        )
        return
    table = [("*" if used else "", *row) for *row, used in rows]
    show_table("Runtimes", ("", "runtime", "name", "version", "folder"), table)


@app.command()
def install(
    runtime: Annotated[str, typer.Argument(metavar="tflm", help="What to install; only tflm can be.")],
    mirror: Annotated[
        str,
        typer.Option(
            metavar="PATTERN",
            envvar="FORGE_TFLM_MIRROR",
            help="URL or folder with {owner} and {name} to fetch from instead of GitHub.",
        ),
    ] = "",
    commit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[OWNER/NAME=]SHA",
            help="Another commit than the pinned one, of tflite-micro or a named repository.",
        ),
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Use this tflite-micro checkout, or output of create_tflm_tree.py, in place."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Install again what is installed.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Install TFLM with the third-party sources it pins, and make it the default runtime.

    Example: forge runtime install tflm --mirror 'https://git.example.org/{owner}/{name}'
    """
    from tflm_forge.config import load_config
    from tflm_forge.console import show_progress
    from tflm_forge.errors import UsageError
    from tflm_forge.runtimes.tflm.install import install as install_tree
    from tflm_forge.runtimes.tflm.pins import parse_commits

    if runtime != "tflm":
        raise UsageError(f"{runtime!r} can not be installed", hint="Only tflm can; bundled travels with forge.")
    commits = parse_commits(commit or ())
    mirror = mirror or load_config(Path.cwd()).runtime.mirror or ""
    with show_progress("Installing TFLM ..."):
        done = install_tree(mirror=mirror, commits=commits, tree=tree, force=force)
    _show(done, as_json=as_json)


@app.command()
def show(name: Annotated[str, typer.Argument(metavar="[NAME]")] = "", as_json: JsonOption = False) -> None:
    """Show an installed tree, by default the one in use: its sources, commits and kernel sets.

    Example: forge runtime show
    """
    _show(_find(name), as_json=as_json)


@app.command()
def use(name: _NameArgument) -> None:
    """Make an installed tree the one that builds use.

    Example: forge runtime use 90b983c2b3f1
    """
    from tflm_forge.console import show_text
    from tflm_forge.runtimes.tflm.install import use_tree

    show_text(f"in use: {use_tree(_find(name).name).name}")


@app.command()
def remove(name: _NameArgument) -> None:
    """Remove an installed tree; a folder that is used in place is left as it is.

    Example: forge runtime remove 90b983c2b3f1
    """
    from tflm_forge.console import show_text
    from tflm_forge.runtimes.tflm.install import remove as remove_tree

    show_text(f"removed {remove_tree(_find(name).name).name}")


def _find(name: str) -> "Installed":
    from tflm_forge.runtimes.tflm.install import find_installed
    from tflm_forge.runtimes.tflm.planning import not_installed_error

    found = find_installed(name)
    if found is None:
        raise not_installed_error()
    return found


def _show(tree: "Installed", *, as_json: bool) -> None:
    from tflm_forge.console import show_json, show_table, show_text
    from tflm_forge.runtimes.tflm.op_table import load_tree_kernel_sets
    from tflm_forge.runtimes.tflm.pins import TFLM_COMMIT

    sets = load_tree_kernel_sets(tree)
    if as_json:
        show_json(_describe(tree, {name: len(kernels.ops) for name, kernels in sets.items()}))
        return
    show_text(f"TFLM {tree.version}")
    show_text(f"folder: {tree.folder}" + (f" (uses {tree.in_place})" if tree.in_place else ""))
    show_text("kernels: " + ", ".join(f"{name} ({len(kernels.ops)} ops)" for name, kernels in sets.items()))
    if tree.version != TFLM_COMMIT:
        show_text(f"op versions and types are those of commit {TFLM_COMMIT}; this tree may differ")
    rows = [
        (
            s.package,
            s.repository,
            s.commit or "-",
            f"not the pinned one, {s.override_of}" if s.override_of else "",
        )
        for s in tree.sources
    ]
    show_table("Sources", ("folder", "repository", "commit", ""), rows)


def _describe(tree: "Installed", kernel_sets: dict[str, int]) -> dict[str, Any]:
    return {
        "runtime": "tflm",
        "name": tree.name,
        "version": tree.version,
        "folder": str(tree.folder),
        "in_place": tree.in_place or None,
        "kernel_sets": kernel_sets,
        "sources": [
            {
                "folder": s.package,
                "repository": s.repository,
                "commit": s.commit or None,
                "instead_of": s.override_of or None,
            }
            for s in tree.sources
        ],
    }
