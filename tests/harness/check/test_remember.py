"""What was read of an engine's source is read again only when source or reader changed."""

import pytest

from staticfire.harness.check import frontend, templates
from staticfire.harness.check.remember import remembered


@pytest.fixture
def reads(tmp_path, monkeypatch):
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path))
    seen: list[str] = []

    def read():
        seen.append("read")
        return ["a", "{} is not b"]

    return seen, read


def test_the_same_source_is_read_once(reads):
    seen, read = reads
    assert [remembered(frontend, "one", read) for _ in range(3)] == [["a", "{} is not b"]] * 3
    assert len(seen) == 1


def test_another_source_or_another_reader_is_read_anew(reads):
    seen, read = reads
    for reader, source in ((frontend, "one"), (frontend, "two"), (templates, "one")):
        remembered(reader, source, read)
    assert len(seen) == 3


def test_a_damaged_file_is_read_anew(reads, tmp_path):
    seen, read = reads
    remembered(frontend, "one", read)
    (kept,) = (tmp_path / "check").iterdir()
    kept.write_text('["a", ')
    assert remembered(frontend, "one", read) == ["a", "{} is not b"]
    assert len(seen) == 2
    assert remembered(frontend, "one", read) == ["a", "{} is not b"]
    assert len(seen) == 2


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(reads, tmp_path):
    seen, read = reads
    (tmp_path / "check").write_text("a file")
    assert [remembered(frontend, "one", read) for _ in range(2)] == [["a", "{} is not b"]] * 2
    assert len(seen) == 2
