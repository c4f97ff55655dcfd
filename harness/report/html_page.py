"""`index.html`: the run for people. One plain file: grids, filters, an anchor for every cell; no network.

Everything shown is escaped by jinja2; a content policy that knows the page's own script and style by hash keeps the
browser from running anything else. Without JavaScript the page is complete, only the filters are missing.
"""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import jinja2
from markupsafe import Markup

from staticfire.harness.report.html_grid import Factors, Grid, factors_of, grids_of
from staticfire.harness.report.text import clean, evidence, headline
from staticfire.harness.run.record import RunRecord, duration
from staticfire.harness.run.result import GOOD, VERDICTS, CellResult

NAME = "html"
FILE = "index.html"

SIZE_LIMIT = 950_000
"""Bytes. A page grows plainer, never larger."""

EVIDENCE_OF_ONE = 6_000
"""Characters of evidence of one cell; the rest is in results.json."""


@dataclass(frozen=True)
class _Level:
    """How much a page shows.

    Attributes:
        columns: A column for each axis (a cell's id names the values as well).
        figures: The figures of cells that are as they should be.
        anchors: Kinds of cells (`g` as they should be, `b` findings) with their anchor in the file; the script sets
            those of the rest.
        evidence: Characters of evidence of all findings together.
    """

    columns: bool
    figures: bool
    anchors: str
    evidence: int


_LEVELS = (
    _Level(columns=True, figures=True, anchors="gb", evidence=400_000),
    _Level(columns=True, figures=False, anchors="gb", evidence=300_000),
    _Level(columns=False, figures=False, anchors="gb", evidence=200_000),
    _Level(columns=False, figures=False, anchors="b", evidence=50_000),
    _Level(columns=False, figures=False, anchors="", evidence=0),
)


@dataclass(frozen=True)
class _Row:
    id: str
    verdict: str
    kind: str
    rule: str
    seconds: str
    codes: str
    values: list[str]
    headline: str
    evidence: str
    rerun: str


def render(record: RunRecord) -> bytes:
    """Return the page: as rich as fits into `SIZE_LIMIT`."""
    factors = factors_of(record)
    grids = grids_of(record, factors)
    page = b""
    for level in _LEVELS:
        page = _render(record, factors, grids, level)
        if len(page) <= SIZE_LIMIT:
            break
    return page


def _render(record: RunRecord, factors: Factors, grids: tuple[list[Grid], int], level: _Level) -> bytes:
    script, style = _resource("page.js"), _resource("page.css")
    text = _template().render(
        record=record,
        duration=duration(record.seconds),
        axes=factors.axes,
        grids=grids[0],
        grids_left_out=grids[1],
        verdicts=VERDICTS,
        kinds=_KINDS,
        level=level,
        rows=list(_rows(record, factors, level)),
        rerun=record.rerun("ID"),
        script=script,
        style=style,
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'",
    )
    return text.encode()


_KINDS = {verdict: "g" if verdict in GOOD else "b" for verdict in VERDICTS}


def _rows(record: RunRecord, factors: Factors, level: _Level) -> Iterator[_Row]:
    left = level.evidence
    for index, result in enumerate(record.results):
        shown = _evidence(result, level, left)
        left -= len(shown)
        finding = result.verdict not in GOOD
        yield _Row(
            id=result.id,
            verdict=result.verdict,
            kind=_KINDS[result.verdict],
            rule=result.rule or "",
            seconds=f"{result.seconds:.2f}",
            codes=",".join(map(str, factors.places[index])),
            values=factors.values(index) if level.columns else [],
            headline=headline(result) if finding else "",
            evidence=shown,
            rerun=record.rerun(result.id) if shown else "",
        )


def _evidence(result: CellResult, level: _Level, left: int) -> str:
    if result.verdict in GOOD and not level.figures:
        return ""
    text = clean(evidence(result))
    if len(text) > EVIDENCE_OF_ONE:
        text = f"{text[:EVIDENCE_OF_ONE]}\n... the rest is in results.json"
    return text if len(text) <= left else ""


def _finalize(value: object) -> object:
    """Whatever is shown loses what HTML cannot hold; the page's own script and style are `Markup`, and stay."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _resource(name: str) -> str:
    return (files("staticfire.harness.report") / "templates" / name).read_text("utf-8")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined, finalize=_finalize
    )
    environment.filters["clean"] = clean
    return environment.from_string(_resource("page.html.j2"))
