"""`forge check`: the gate of a repository: models, manifests and op resolvers must agree."""

from pathlib import Path
from typing import Annotated

import typer

from tflm_forge.commands._options import JsonOption


def run(
    manifests: Annotated[
        list[Path] | None,
        typer.Argument(metavar="MANIFEST...", help="Manifests to check; default: [operator_ci_check] of forge.toml."),
    ] = None,
    sarif: Annotated[
        Path | None, typer.Option("--sarif", metavar="FILE", help="Write the findings as SARIF 2.1.0 too.")
    ] = None,
    github: Annotated[
        bool, typer.Option("--github", help="Print GitHub annotations too; on by itself in GitHub Actions.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check that models, committed manifests and op resolvers in the sources agree; exit 7 when they do not.

    Reads the models, makes their manifests again, and compares: an op that the firmware lacks, or a version above what
    its kernels implement, stops in the repository. Nothing is built.

    Example: forge check --sarif forge.sarif
    """
    from tflm_forge.config import load_config
    from tflm_forge.console import show_json, show_text
    from tflm_forge.errors import CheckError
    from tflm_forge.files import write_output
    from tflm_forge.gates.check import check_project
    from tflm_forge.gates.project_files import find_root
    from tflm_forge.reports.annotations import github_lines
    from tflm_forge.reports.check import as_json as describe
    from tflm_forge.reports.check import summary, text_lines
    from tflm_forge.reports.sarif import render_sarif

    folder = Path.cwd()
    report = check_project(folder, load_config(folder), manifests or ())
    if as_json:
        show_json(describe(report, folder))
    else:
        for line in text_lines(report, folder):
            show_text(line)
    if github or _is_github():
        for line in github_lines(report, find_root(folder)):
            typer.echo(line, err=as_json)
    if sarif is not None:
        write_output(sarif, render_sarif(report, find_root(folder)))
    if not report.passed:
        raise CheckError(f"forge check {summary(report)}")


def _is_github() -> bool:
    import os

    return os.environ.get("GITHUB_ACTIONS") == "true"
