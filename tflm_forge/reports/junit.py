"""The test report as JUnit XML, as CI systems show it: a suite for each part, a case for each check."""

import xml.etree.ElementTree as ET

from tflm_forge.verify.records import Check, Part, TestReport


def report_to_junit(report: TestReport) -> bytes:
    """Return a report as an XML document."""
    root = ET.Element("testsuites", name=f"{report.model} on {report.device.board}")
    for part in report.parts:
        _add_part(root, part, report)
    checks = sum(len(part.checks) for part in report.parts)
    root.set("tests", str(checks))
    root.set("failures", str(sum(len(part.failures) for part in report.parts)))
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _add_part(root: ET.Element, part: Part, report: TestReport) -> None:
    skipped = bool(part.skipped and not part.checks)
    suite = ET.SubElement(
        root,
        "testsuite",
        name=part.name,
        tests=str(max(len(part.checks), int(skipped))),
        failures=str(len(part.failures)),
        errors="0",
        skipped=str(int(skipped)),
    )
    where = f"{report.model}.{report.device.board}.{part.name}"
    for check in part.checks:
        _add_check(suite, where, check)
    if skipped:
        case = ET.SubElement(suite, "testcase", classname=where, name=part.name)
        ET.SubElement(case, "skipped", message=_xml_text(part.skipped))
    if report.log_lines and part.failures:
        ET.SubElement(suite, "system-out").text = _xml_text("\n".join(report.log_lines))


def _add_check(suite: ET.Element, where: str, check: Check) -> None:
    case = ET.SubElement(suite, "testcase", classname=where, name=_xml_text(check.name))
    if not check.passed:
        failure = ET.SubElement(case, "failure", message=_xml_text(check.detail))
        failure.text = _xml_text(check.detail)


def _xml_text(text: str) -> str:
    """Return text without the characters that XML 1.0 can not hold: a device may print any."""
    return "".join(c if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff") else "\ufffd" for c in text)
