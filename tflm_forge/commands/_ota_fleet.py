"""Shows the verdicts on a fleet: as a table, as JSON, and as a CSV file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tflm_forge.config import Config
from tflm_forge.errors import CheckError, UsageError

if TYPE_CHECKING:
    from tflm_forge.gates.fleet import FleetRow

_MOST_SHOWN = 10
_EXAMPLES = 3


def finish_fleet(rows: "Sequence[FleetRow]", model: str, config: Config, csv: Path | None, *, as_json: bool) -> int:
    """Show the verdicts on a fleet and return the exit code, that of the gravest verdict.

    Raises:
        UsageError: the CSV file can not be written.
    """
    from tflm_forge.console import show_json, show_note
    from tflm_forge.files import write_if_changed
    from tflm_forge.gates.fleet import group_rows, render_csv

    if csv is not None:
        try:
            write_if_changed(csv, render_csv(rows))
        except OSError as error:
            raise UsageError(f"{csv}: can not write: {error.strerror or error}") from error
        show_note(f"{csv}: a line for each of {len(rows):,} manifests")
    groups = group_rows(rows)
    if as_json:
        counts: dict[str, int] = {}
        for group in groups:
            counts[group.verdict] = counts.get(group.verdict, 0) + len(group.paths)
        show_json(
            {
                "tflm_forge_ota_fleet": 1,
                "model": model,
                "firmwares": len(rows),
                "verdicts": counts,
                "groups": [
                    {
                        "verdict": group.verdict,
                        "reasons": list(group.titles),
                        "count": len(group.paths),
                        "manifests": list(group.paths),
                    }
                    for group in groups
                ],
                "unreadable": [{"manifest": row.path, "problem": row.problem} for row in rows if row.problem],
            }
        )
    else:
        _show_groups(rows, model)
    return _exit_code(rows, config)


def _show_groups(rows: "Sequence[FleetRow]", model: str) -> None:
    from tflm_forge.console import show_table, show_text
    from tflm_forge.gates.fleet import group_rows

    table = []
    for group in group_rows(rows):
        names = ", ".join(group.paths[:_EXAMPLES]) + (", ..." if len(group.paths) > _EXAMPLES else "")
        table.append((len(group.paths), group.verdict, "; ".join(group.titles), names))
    title = f"{model} on {len(rows):,} firmwares"
    show_table(title, ("firmwares", "verdict", "reasons", "manifests"), table, right=(0,))
    unreadable = [row for row in rows if row.problem]
    for row in unreadable[:_MOST_SHOWN]:
        show_text(f"  unreadable: {row.problem}")
    if len(unreadable) > _MOST_SHOWN:
        show_text(f"  and {len(unreadable) - _MOST_SHOWN:,} more: --json or --csv names them all")


def _exit_code(rows: "Sequence[FleetRow]", config: Config) -> int:
    from tflm_forge.gates.reasons import exit_code

    policy = config.ota_model_compatibility
    codes = {exit_code(row.judgement.verdict, policy) if row.judgement else CheckError.exit_code for row in rows}
    # 3, reject, is graver than 7, firmware upgrade first.
    return min(codes - {0}, default=0)
