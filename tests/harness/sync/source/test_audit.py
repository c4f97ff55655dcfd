"""What the audit of a small engine finds, and what each edit of it changes."""

from pathlib import Path

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.sync.source.audit import audit
from staticfire.harness.sync.source.text import render

MESSAGES, CORE, CLIENT, WORKER, CONFIG = (
    f"engine/{name}.py" for name in ("messages", "core", "client", "worker", "config")
)
SENT = [
    (MESSAGES, "block: int", "block: int\n            stride: int | None = None"),
    (CORE, "block=cache.block)", "block=cache.block, stride=cache.stride)"),
]
APPLIED = (CLIENT, "cache.block = hello.block", "cache.block = hello.block; whole.cache.stride = hello.stride")
BROUGHT = (CORE, "whole.model.length = 64", "whole.model.length = 64; whole.cache.stride = max(self.executor.specs())")


WIDTH = """            @property
            def width(self):
                return self.stride

            @width.setter
            def width(self, value):
                self.stride = value

"""


def line(root, file, text):
    lines = (root.parent / file).read_text().splitlines()
    return next(number for number, found in enumerate(lines, 1) if text in found)


def test_the_field_that_nothing_carries_is_named_with_write_read_and_carrier(edited):
    root = edited()
    (finding,) = audit(root, processes=1).findings
    assert (finding.field, finding.process) == ("cache.stride", "worker")
    assert (finding.carried_by, finding.applied) == (None, None)
    assert str(finding.write).endswith(f"{WORKER}:{line(root, WORKER, 'cache.stride =')}")
    assert str(finding.read).endswith(f"{CONFIG}:{line(root, CONFIG, '__dict__')}")
    assert "no field of Hello" in finding.reason


def test_the_printed_report_says_in_one_line_what_is_not_audited(edited):
    (said,) = [line for line in render(audit(edited(), processes=1)).splitlines() if "not audited" in line]
    assert "specifications" in said
    assert "sets back" in said


def test_names_do_not_matter(found):
    renamed = [(name, "stride", "xyzzy") for name in (CONFIG, WORKER)]
    renamed += [(name, "Hello", "Quux") for name in (MESSAGES, CORE, CLIENT)]
    (finding,) = found(*renamed).values()
    assert finding.field == "cache.xyzzy"
    assert "Quux" in finding.reason


def test_sent_and_applied_and_settled_by_the_core_itself_it_travels(found):
    assert not found(*SENT, APPLIED, BROUGHT)


def test_sent_and_not_taken_over_it_does_not_travel(found):
    finding = found(*SENT, BROUGHT)["cache.stride"]
    assert (finding.carried_by, finding.applied) == ("Hello", None)
    assert "no client takes it over" in finding.reason


@pytest.mark.parametrize("field", ["length", "pool", "block"])
def test_each_carried_field_is_found_once_it_is_not(found, field):
    sent = {"length": "length=self.whole.model.length, ", "pool": "pool=cache.pool, ", "block": ", block=cache.block"}
    edits = [(CORE, sent[field], "")]
    if field == "length":  # nobody reads it in a bunch
        edits.append(("engine/front.py", "self.whole.cache.labels()", "self.whole.model.length"))
        assert found(*edits).keys() == {"model.length"}
    else:
        assert f"cache.{field}" in found(*edits)


def test_what_nobody_reads_is_no_finding(found):
    assert not found(("engine/front.py", "self.whole.cache.labels()", "None"))


def test_a_read_before_the_engines_are_ready_does_not_count(found):
    before = "self.whole = whole\n                self.seen = whole.cache.labels()"
    edits = [
        ("engine/front.py", "self.whole.cache.labels()", "None"),
        ("engine/front.py", "self.whole = whole", before),
    ]
    assert not found(*edits)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("cache = copy.deepcopy(whole.cache); cache.stride = 1", "into a copy that the function made"),
        (
            "kept = whole.cache.stride; whole.cache.stride = 1; whole.cache.stride = kept",
            "put back in the same function",
        ),
        ("[setattr(whole.cache, name, 1) for name in dir(whole)]", "setattr of a computed name"),
        ("whole.cache.stride += 1", "counted on by each process for itself"),
    ],
)
def test_what_settles_nothing_or_cannot_be_decided_is_counted(edited, written, why):
    root = edited(
        (WORKER, "cache.stride = cache.block", "pass"),
        (WORKER, "from engine.config import Whole", "import copy\n        from engine.config import Whole"),
        (WORKER, "Align.settle(whole)", f"Align.settle(whole); {written}"),
    )
    report = audit(root, processes=1)
    assert "cache.stride" not in {finding.field for finding in report.findings}
    assert report.coverage.undecided[why] >= 1
    assert why in render(report)


@pytest.mark.parametrize(
    "written",
    [
        "setattr(cache, 'stride', 1)",
        "cache.__dict__['stride'] = 1",
        "vars(cache)['stride'] = 1",
        "cache.__dict__.update(stride=1)",
        "object.__setattr__(cache, 'stride', 1)",
        "for name in ('stride', 'quiet'):\n                    setattr(cache, name, 1)",
        "alias = whole; inner = alias.cache; inner.stride = 1",
        "cache.stride, other = 1, 2",
        "cache.__dict__.update({'stride': 1})",
        "cache.__dict__ |= {'stride': 1}",
        "cache.__dict__ = {**cache.__dict__, 'stride': 1}",
        "cache.__dict__.setdefault('stride', 1)",
        "vars(cache).update(stride=1)",
        "cache.__setattr__('stride', 1)",
        "(other := whole.cache).stride = 1",
        "whole.cache = dataclasses.replace(whole.cache, stride=1)",
        "new = dataclasses.replace(cache, stride=1); whole.cache = new",
        "whole.cache = Cache(stride=1)",
        "setattr(whole, 'cache', copy.copy(cache)); whole.cache.stride = 1",
        "shallow = copy.copy(whole); shallow.cache.stride = 1",
        "cache.width = 1",
    ],
)
def test_other_ways_to_write_and_aliases_are_followed(found, written):
    assert "cache.stride" in found(
        (WORKER, "cache.stride = cache.block", written),
        (
            WORKER,
            "from engine.config import Whole",
            "import copy, dataclasses\n        from engine.config import Cache, Whole",
        ),
        (CONFIG, "            def labels", f"{WIDTH}            def labels"),
    )


@pytest.mark.parametrize(
    "written",
    [
        "mine = dataclasses.replace(whole.cache, stride=1)",
        "mine = copy.deepcopy(whole); mine.cache = dataclasses.replace(mine.cache, stride=1)",
        "mine = dataclasses.replace(whole, cache=copy.copy(cache)); mine.cache.stride = 1",
    ],
)
def test_what_is_written_to_a_copy_stays_in_it(found, written):
    assert not found(
        (WORKER, "cache.stride = cache.block", written),
        (
            WORKER,
            "from engine.config import Whole",
            "import copy, dataclasses\n        from engine.config import Whole",
        ),
    )


def test_an_object_of_unknown_type_is_counted(edited):
    report = audit(edited((WORKER, "cache.stride = cache.block", "{'a': cache}['a'].stride = 1")), processes=1)
    assert report.coverage.undecided["object of unknown type"] >= 1
    assert not report.findings


@pytest.mark.parametrize(
    "read", ["asdict(self.whole)", "dataclasses.asdict(self.whole.cache)", "vars(self.whole.cache)"]
)
def test_a_reader_of_everything_reads_what_is_inside(found, read):
    front = "engine/front.py"
    imports = "import dataclasses\n        from dataclasses import asdict\n        from engine.config"
    assert found((front, "self.whole.cache.labels()", read), (front, "from engine.config", imports))


def test_a_section_may_inherit_from_another_file(edited):
    root = edited(
        (
            CONFIG,
            "@dataclass\n        class Cache:",
            "from engine.more import More\n\n        @dataclass\n        class Cache(More):",
        ),
        (CONFIG, "            stride: int | None = None\n", ""),
    )
    (root / "more.py").write_text("class More:\n    stride: int | None = None\n")
    assert [finding.field for finding in audit(root, processes=1).findings] == ["cache.stride"]


def test_writes_that_run_before_the_copy_as_well_are_no_finding(edited):
    report = audit(edited((CORE, "whole.model.length = 64", "whole.model.length = 64; whole.cache.__post_init__()")), 1)
    assert {finding.field for finding in report.findings} == {"cache.stride"}
    assert report.coverage.undecided["runs before the copy as well"] >= 1


def test_a_file_that_does_not_parse_is_named_and_the_rest_is_read(edited):
    root = edited()
    (root / "broken.py").write_text("def (:\n")
    report = audit(root, processes=1)
    assert [finding.field for finding in report.findings] == ["cache.stride"]
    (unread,) = report.coverage.unread
    assert unread.path.endswith("broken.py")
    assert "broken.py:1: not Python" in render(report)


def test_a_tree_without_a_ready_response_is_one_error(tmp_path):
    (tmp_path / "one.py").write_text("x = 1\n")
    with pytest.raises(InputError, match="no message is made there"):
        audit(tmp_path)


def test_two_processes_find_what_one_finds(edited, monkeypatch):
    root = edited()
    alone = audit(root, processes=1)
    monkeypatch.setattr("staticfire.harness.sync.source.reading.ALONE", 1)
    assert audit(root, processes=2) == alone


class TestOurOwnEngine:
    ENGINE = Path(__file__).resolve().parents[4] / "engine"

    def copied(self, tmp_path, drop=""):
        root = tmp_path / "engine"
        for path in self.ENGINE.rglob("*.py"):
            target = root / path.relative_to(self.ENGINE)
            target.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text(encoding="utf-8")
            if drop and path.name == "response.py":
                lines = text.split("\n")
                kept = [one for one in lines if not one.startswith(f"    {drop}: Annotated")]
                assert len(kept) == len(lines) - 1
                text = "\n".join(kept)
            target.write_text(text, encoding="utf-8")
        return root

    def test_everything_travels(self):
        report = audit(self.ENGINE, processes=1)
        assert report.findings == ()
        assert report.coverage.placed["worker"] >= 20
        assert report.coverage.channels["ReadyResponse"] >= 20

    @pytest.mark.parametrize("field", ["mamba_block_size", "block_size", "num_groups"])
    def test_a_field_deleted_from_the_response_is_found(self, tmp_path, field):
        report = audit(self.copied(tmp_path, drop=field), processes=1)
        assert [finding.field for finding in report.findings] == [f"runtime.{field}"]
        assert report.findings[0].process == "worker"
