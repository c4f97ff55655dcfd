"""`--format junit`: one test case a site. Certain findings fail it; a site that was not judged counts as skipped."""

from xml.etree import ElementTree as ET

from staticfire.harness.check.base import Finding, Place, Report, Verdict
from staticfire.harness.check.coverage import JUDGED
from staticfire.harness.check.formats.base import headline, printed, told
from staticfire.harness.check.messages import printable
from staticfire.harness.report.text import clean

NAME = "junit"
LAST_LINE = False

Key = tuple[str, int, int]


def render(report: Report) -> str:
    """The file, ending in a newline."""
    report = printed(report)
    by_site: dict[Key, list[tuple[Finding, Place]]] = {}
    for finding in report.findings:
        for place in finding.sites:
            by_site.setdefault(_key(place), []).append((finding, place))
    cases = [_case(verdict, by_site.pop(_key(verdict.place), [])) for verdict in report.verdicts]
    # Comments that suppress nothing stand beside the sites.
    cases += [_case(Verdict(found[0][1], JUDGED), found) for _, found in sorted(by_site.items())]
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite")
    suite.extend(cases)
    totals = {
        "name": clean(f"staticfire check: {report.engine} on {report.device}"),
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": "0",
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
    }
    root.attrib.update(totals)
    suite.attrib.update(totals)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _key(place: Place) -> Key:
    return (place.path, place.line, place.column)


def _case(verdict: Verdict, found: list[tuple[Finding, Place]]) -> ET.Element:
    place = verdict.place
    name = f"{place.function or place.form}:{place.line}:{place.column}"
    file = clean(printable(place.path))
    case = ET.Element("testcase", classname=file, name=clean(name), file=file, line=str(place.line))
    certain = [(finding, where) for finding, where in found if where.certainty == "certain"]
    if certain:
        finding = certain[0][0]
        failure = ET.SubElement(case, "failure", message=clean(headline(finding)), type=finding.kind)
        failure.text = clean("\n\n".join(told(*one) for one in certain) + "\n")
    elif verdict.state != JUDGED:
        ET.SubElement(case, "skipped", message=clean(verdict.state))
    possible = [(finding, where) for finding, where in found if where.certainty == "possible"]
    said = [f"possible: {told(*one)}" for one in possible]
    said += [f"not known: {one}" for one in verdict.unknown]
    if said:
        ET.SubElement(case, "system-out").text = clean("\n\n".join(said) + "\n")
    return case
