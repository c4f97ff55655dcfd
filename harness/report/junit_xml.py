"""`junit.xml`: the run for build servers. A cell refused as expected is a pass, with its rule as a property."""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from staticfire.harness.report.text import clean, evidence, headline
from staticfire.harness.run.record import RunRecord
from staticfire.harness.run.result import GOOD, CellResult

NAME = "junit"
FILE = "junit.xml"


def render(record: RunRecord) -> bytes:
    """Return the file: UTF-8, one test suite, one test case a cell."""
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite")
    for result in record.results:
        suite.append(_case(record, result))
    for element in (root, suite):
        element.attrib.update(_totals(record))
    suite.set("timestamp", record.started.removesuffix("+00:00"))
    ET.indent(root, " ")
    return bytes(ET.tostring(root, "utf-8", xml_declaration=True)) + b"\n"


def _totals(record: RunRecord) -> dict[str, str]:
    bad = [result.verdict for result in record.findings]
    return {
        "name": clean(record.identity.matrix),
        "tests": str(len(record.results)),
        "failures": str(sum(verdict != "error" for verdict in bad)),
        "errors": str(bad.count("error")),
        "skipped": "0",
        "time": f"{_time(record.results):.3f}",
    }


def _time(results: Sequence[CellResult]) -> float:
    return sum(result.seconds for result in results)


def _case(record: RunRecord, result: CellResult) -> ET.Element:
    case = ET.Element(
        "testcase",
        classname=clean(f"{record.identity.matrix}.{result.axes.get('model', 'cell')}"),
        name=clean(result.id),
        time=f"{result.seconds:.3f}",
    )
    properties = ET.SubElement(case, "properties")
    ET.SubElement(properties, "property", name="verdict", value=result.verdict)
    if result.rule:
        ET.SubElement(properties, "property", name="rule", value=clean(result.rule))
    if result.verdict not in GOOD:
        kind = "error" if result.verdict == "error" else "failure"
        fault = ET.SubElement(case, kind, message=clean(headline(result)), type=result.verdict)
        fault.text = clean(f"{headline(result)}\nrerun: {record.rerun(result.id)}\n{evidence(result)}\n")
    return case
