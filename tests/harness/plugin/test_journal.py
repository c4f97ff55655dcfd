import errno
import os

from staticfire.harness.plugin.workers.journal import WorkerJournal, last_event


def test_a_test_that_patches_os_write_leaves_the_journal_alone(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    journal = WorkerJournal(tmp_path, "gw0")
    monkeypatch.setattr(os, "write", full)
    journal.note("a.py::b", "started")
    event = last_event(tmp_path, "gw0")
    assert event is not None
    assert event.test == "a.py::b"
    journal.close()


def test_a_journal_on_a_full_disk_stops_no_test(tmp_path):
    (tmp_path / "gw0.events.jsonl").symlink_to("/dev/full")
    journal = WorkerJournal(tmp_path, "gw0")
    journal.note("a.py::b", "started")
    journal.close()
