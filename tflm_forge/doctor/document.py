"""Writes the rules into docs/doctor.md.

For developers, after a rule was added or changed: `python -m tflm_forge.doctor.document`.
"""

from pathlib import Path

from tflm_forge.doctor import RULES
from tflm_forge.doctor.records import Rule
from tflm_forge.files import write_if_changed

BEGIN = "<!-- rules: begin; written by python -m tflm_forge.doctor.document -->"
END = "<!-- rules: end -->"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "doctor.md"


def describe_rules() -> str:
    """Return all rules as Markdown: a table of them, then each."""
    rows = [f"| [`{rule.id}`](#{rule.id}) | {rule.severity} | {rule.title} |" for rule in RULES]
    table = "\n".join(["| rule | severity | what it finds |", "|---|---|---|", *rows])
    return "\n\n".join([table, *map(_describe, RULES)])


def _describe(rule: Rule) -> str:
    needs = {"model": "", "runtime": " Asked when a runtime is chosen.", "board": " Asked when a board is chosen."}
    remedy = f"\n\nRemedy: {rule.remedy}" if rule.remedy else ""
    return (
        f"### {rule.id}\n\n{rule.severity.capitalize()}: {rule.title}. {rule.why}{needs[rule.needs]}{remedy}\n\n"
        f"Source: {rule.source}."
    )


def insert_rules(text: str) -> str:
    """Return a document with the rules between its two marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{describe_rules()}\n\n{END}{after}"


def main() -> None:
    """Write the rules into the document."""
    write_if_changed(DOCUMENT, insert_rules(DOCUMENT.read_text(encoding="utf-8")).encode())


if __name__ == "__main__":
    main()
