import base64
import hashlib
import random
import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from staticfire.harness.report import html_page
from staticfire.harness.report.html_page import SIZE_LIMIT, render
from staticfire.harness.run.result import CellResult, Verdict

VOID = {"meta", "input", "wbr"}
OPTIONAL_END = {"td", "th", "tr", "li", "option"}


class Page(HTMLParser):
    """Collects what a browser would see; fails on an end tag that closes nothing."""

    def __init__(self, raw):
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.rows: list[tuple[dict[str, str], list[str]]] = []
        self.hrefs: list[str] = []
        self.events: list[str] = []
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.feed(raw.decode())
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags[tag] += 1
        self.events += [name for name in attrs if name.startswith("on") or name == "style" or name == "src"]
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if "href" in attrs:
            self.hrefs.append(attrs["href"])
        if tag == "tr":
            self.rows.append((attrs, []))
        if tag in ("td", "th") and self.rows:
            self.rows[-1][1].append("")
        if tag not in VOID | OPTIONAL_END:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in OPTIONAL_END:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.scripts.append(data)
        elif self.rows and self.rows[-1][1]:
            self.rows[-1][1][-1] += data

    def row(self, cell_id):
        return next(
            (attrs, [text.strip() for text in texts]) for attrs, texts in self.rows if attrs.get("id") == cell_id
        )


def page_of(record):
    return Page(render(record))


def test_every_cell_has_its_row_its_anchor_and_its_values(record):
    page = page_of(record)
    assert [attrs["id"] for attrs, _ in page.rows if attrs.get("data-a")] == [r.id for r in record.results]
    attrs, texts = page.row("jamba-off")
    assert attrs["class"] == "g"
    assert texts == ["jamba-off", "refused as expected (SF101)", "0.50", "jamba-tiny", "16", "false"]


def test_a_finding_shows_its_evidence_and_how_to_rerun_it(record):
    attrs, texts = page_of(record).row("jamba-32")
    assert attrs["class"] == "b"
    assert "staticfire run matrices/hybrid.toml --cell jamba-32" in texts[0]
    assert "expected token 12 ' the', observed 99 ' a'" in texts[0]


def test_findings_are_listed_first_with_links(record):
    page = page_of(record)
    assert page.hrefs == ["#jamba-32", "#llama-16", "#llama-32", "#llama-64"]
    assert all(href[1:] in page.ids for href in page.hrefs)


def test_ids_are_unique(record):
    ids = page_of(record).ids
    assert len(ids) == len(set(ids))


def test_codes_point_at_the_values_of_the_filters(record):
    attrs, _ = page_of(record).row("llama-64")
    # model, block_size and caching in order of appearance: llama-tiny is the second, 64 the third, true the first
    assert attrs["data-a"] == "1,2,0"


def test_the_grid_counts_every_combination(record):
    raw = render(record).decode()
    grids = re.findall(r"<caption>(.*?)</caption>(.*?)</table>", raw, re.DOTALL)
    assert {name for name, _ in grids} == {"model x block_size", "model x caching", "block_size x caching"}
    body = dict(grids)["model x block_size"]
    rows = [re.split(r"<t[dh][^>]*>", row.strip())[1:] for row in body.split("<tr>")[1:]]
    assert rows == [
        ["", "16", "32", "64"],
        ["jamba-tiny", "2", "1 of 1", "-"],
        ["llama-tiny", "1 of 1", "1 of 1", "1 of 1"],
    ]


def test_the_pair_that_explains_the_findings_comes_first(make_record, make_result):
    results = [
        make_result(f"{size}-{caching}-{n}", "failed" if (size, caching) == (32, True) else "passed",
                    block_size=size, caching=caching, model=f"m{n}")
        for size in (16, 32) for caching in (True, False) for n in range(3)
    ]  # fmt: skip
    raw = render(make_record(results)).decode()
    assert re.findall(r"<caption>(.*?)</caption>", raw)[0] == "block_size x caching"


EVIL = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</pre></table><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "<!--",
    "]]>",
]


@pytest.mark.parametrize("evil", EVIL)
def test_everything_is_escaped(make_record, make_result, evil, failure):
    failing = {**failure, "message": evil, "expected_token": {"id": 1, "text": evil}}
    results = [
        make_result(evil, "failed", rule=evil, detail={evil: evil, "failures": [failing]}, model=evil),
        make_result("plain", "error", detail={"error": evil, "output": evil}),
        make_result("good", detail={"note": evil}),
    ]
    record = make_record(results, file=evil, axes=("model", "block_size", evil))
    page, harmless = page_of(record), page_of(make_record([make_result("x")]))
    assert page.tags["script"] == 1
    assert not {"img", "svg"} & page.tags.keys()
    assert page.events == []
    assert evil in page.ids
    assert evil in page.row(evil)[1][0]
    assert page.scripts == harmless.scripts


def found(pattern, text):
    match = re.search(pattern, text, re.DOTALL)
    assert match is not None
    return match[1]


def test_the_policy_allows_this_script_and_style_only(record):
    raw = render(record).decode()
    policy = found(r'Content-Security-Policy" content="([^"]*)"', raw).replace("&#39;", "'")
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        content = found(rf"<{tag}>(.*?)</{tag}>", raw)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_it_needs_nothing_from_outside(record):
    raw = render(record).decode()
    assert not re.search(r"https?://|@import|<link|<img|src=", raw)


def test_without_script_the_page_is_whole(record):
    page = page_of(record)
    hidden = [attrs for attrs, _ in page.rows if "hidden" in attrs]
    assert hidden == []


def test_control_characters_do_not_reach_the_page(make_record, make_result):
    raw = render(make_record([make_result("a\x1b\x00b", "failed", detail={"error": "\x07\ufffe"})])).decode()
    assert not re.search("[\x00-\x08\x0b-\x1f\ufffe]", raw)


def big_record(make_record, count, bad, id_length):
    generator = random.Random(0)
    axes: dict[str, list[object]] = {
        "model": ["jamba-tiny", "jamba-tiny-grow", "llama-tiny"],
        "dtype": ["float32", "bfloat16", "float64"],
        "quantization": ["unset", "experts_int8"],
        "mamba_cache_mode": ["unset", "none", "align"],
        "enable_prefix_caching": [True, False, "unset"],
        "enable_chunked_prefill": [True, False, "unset"],
        "block_size": [16, 32, 64],
        "max_num_batched_tokens": [64, 256, 1024],
    }
    results = []
    for number in range(count):
        values = {axis: generator.choice(options) for axis, options in axes.items()}
        verdict: Verdict = "failed" if number < bad else "passed"
        detail = {
            "grade": "exact",
            "noise": {"max": 1e-6, "rms": 1e-7},
            "output": "x" * (5_000 if number < bad else 60),
        }
        name = f"cell-{number}-".ljust(id_length, "x")
        results.append(CellResult(id=name, axes=values, verdict=verdict, seconds=1.2345, detail=detail))
    return make_record(results, axes=list(axes))


@pytest.mark.slow
@pytest.mark.parametrize(("bad", "id_length"), [(0, 50), (30, 60), (5000, 60), (30, 110), (0, 20)])
def test_five_thousand_cells_stay_below_a_megabyte(make_record, bad, id_length):
    record = big_record(make_record, 5000, bad, id_length)
    raw = render(record)
    assert len(raw) <= SIZE_LIMIT < 1_000_000
    page = Page(raw)
    shown = [texts[0].strip() for attrs, texts in page.rows if "data-a" in attrs]
    assert len(shown) == 5000
    assert all(text.startswith(result.id) for text, result in zip(shown, record.results, strict=True))
    bad_ids = {result.id for result in record.findings}
    assert bad == 5000 or bad_ids <= set(page.ids)


def test_a_small_run_is_shown_in_full(make_record):
    raw = render(big_record(make_record, 120, 5, 50)).decode()
    assert "<th>enable_<wbr>prefix_<wbr>caching" in raw
    assert raw.count("<details") == 120


def test_evidence_is_shared_out_and_what_is_cut_is_named(make_record, make_result):
    long = make_result("a", "failed", detail={"output": "y" * 50_000})
    raw = render(make_record([long])).decode()
    assert "the rest is in results.json" in raw
    assert len(raw) < 40_000


def test_many_values_leave_grids_out_and_say_so(make_record, make_result):
    results = [make_result(f"c{n}", model=f"m{n}", block_size=n) for n in range(60)]
    raw = render(make_record(results)).decode()
    assert "pairs of factors are left out" in raw
    assert len(raw) < SIZE_LIMIT


def test_levels_only_get_plainer():
    sizes = [(level.columns, level.figures, level.anchors, level.evidence) for level in html_page._LEVELS]
    assert sizes == sorted(sizes, reverse=True)
