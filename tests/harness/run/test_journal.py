import errno
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from staticfire.harness.run.errors import RunUsageError
from staticfire.harness.run.identity import Identity
from staticfire.harness.run.journal import Header, Journal, read
from staticfire.harness.run.result import CellResult

IDENTITY = Identity(matrix="m", digest="d", job="j:j", content="c", versions={"staticfire": "0.1.0"})
HEADER = Header(staticfire_journal=1, started="2026-01-01T00:00:00+00:00", identity=IDENTITY, cells=["a", "b", "c"])


def result(name, text="x"):
    return CellResult(id=name, axes={"model": "m", "n": 1}, verdict="failed", seconds=0.5, detail={"text": text})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


@pytest.fixture
def written(path):
    with Journal.create(path, HEADER) as journal:
        journal.append(result("a", "newline\nand \u2028 and \x00"))
        journal.append(result("b"))
    return path.read_bytes()


def test_what_is_appended_is_read(path, written):
    contents = read(path)
    assert contents.header == HEADER
    assert list(contents.results) == [result("a", "newline\nand \u2028 and \x00"), result("b")]
    assert contents.size == len(written)
    assert len(written.splitlines()) == 3, "one line a record, whatever is in it"


def test_every_record_is_on_disk_when_append_returns(path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(path.stat().st_size))
    with Journal.create(path, HEADER) as journal:
        journal.append(result("a"))
        assert synced[-1] == path.stat().st_size


def test_a_journal_is_never_overwritten(path, written):
    with pytest.raises(FileExistsError):
        Journal.create(path, HEADER)
    assert path.read_bytes() == written


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_cut_anywhere_it_goes_on_as_if_the_torn_record_had_never_been(path, written, data):
    first = written.index(b"\n") + 1
    cut = data.draw(st.integers(first, len(written)))
    path.write_bytes(written[:cut])
    contents = read(path)
    whole = written[:cut].count(b"\n") - 1
    assert [r.id for r in contents.results] == ["a", "b"][:whole]
    with Journal.reopen(path, contents) as journal:
        for name in ("a", "b", "c")[whole:]:
            journal.append(result(name))
    assert [r.id for r in read(path).results] == ["a", "b", "c"]


def test_a_last_line_of_zeros_counts_as_torn(path, written):
    path.write_bytes(written + b"\0" * 40 + b"\n")
    contents = read(path)
    assert [r.id for r in contents.results] == ["a", "b"]
    assert contents.size == len(written)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda lines: [lines[0], b"{}\n", lines[2]], "line 2: the journal is damaged"),
        (lambda lines: [*lines, lines[1]], "line 4: a second verdict for 'a'"),
        (lambda lines: [lines[0].replace(b'_journal":1', b'_journal":9'), *lines[1:]], "has the form 9"),
        (lambda _: [b"[1, 2]\n"], "is no journal of staticfire"),
        (lambda _: [b'{"other": 1}\n'], "has the form None"),
        (lambda lines: [lines[0][:20]], "its first line is incomplete"),
        (lambda _: [], "its first line is incomplete"),
    ],
)  # fmt: skip
def test_damage_is_told_and_the_way_out_as_well(path, written, damage, message):
    path.write_bytes(b"".join(damage(written.splitlines(keepends=True))))
    with pytest.raises(RunUsageError, match="run without --resume") as error:
        read(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_a_full_disk_leaves_the_journal_as_it_was(path, written, monkeypatch):
    contents = read(path)
    real = os.write

    def write_a_part(descriptor, data):
        if len(data) <= 30:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data[:30])

    with Journal.reopen(path, contents) as journal:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write_a_part)
            with pytest.raises(OSError, match="No space left"):
                journal.append(result("c"))
        assert path.read_bytes() == written
        journal.append(result("c"))
    assert [r.id for r in read(path).results] == ["a", "b", "c"]


def test_a_journal_that_cannot_be_begun_leaves_nothing(path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        Journal.create(path, HEADER)
    assert not path.exists()


def test_a_journal_that_is_a_pipe_or_a_link_is_refused_at_once(path, written, tmp_path):
    target = tmp_path / "target"
    path.rename(target)
    path.symlink_to(target)
    with pytest.raises(OSError, match="is a symbolic link"):
        read(path)
    with pytest.raises(OSError, match="is a symbolic link"):
        Journal.reopen(path, read(target))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="is no regular file"):
        read(path)
