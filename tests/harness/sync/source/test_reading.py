"""What of a folder is read, under which names, and by which processes."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.sync.source import reading
from staticfire.harness.sync.source.audit import audit
from staticfire.harness.sync.source.program import Program
from staticfire.harness.sync.source.reading import read
from staticfire.harness.sync.source.text import render
from waiting import soon_gone


def test_what_is_no_file_is_named_as_not_read(edited):
    root = edited()
    os.mkfifo(root / "pipe.py")
    (root / "gone.py").symlink_to(root / "nothing.py")
    (root / "round").symlink_to(root)
    (root / "notes.txt").symlink_to(root / "nothing.txt")
    report = audit(root, processes=1)
    assert [finding.field for finding in report.findings] == ["cache.stride"]
    assert [Path(entry.path).name for entry in report.coverage.unread] == ["gone.py", "pipe.py"]
    assert "a named pipe" in render(report)


@pytest.mark.parametrize("name", ["engine-1.2.3", "copy", "torch"])
def test_a_copied_package_may_lie_in_a_folder_of_another_name(edited, tmp_path, name):
    root = edited(("engine/front.py", "from engine.client", "import torch.config\n        from engine.client"))
    other = shutil.copytree(root, tmp_path / "elsewhere" / name)
    (finding,) = audit(other, processes=1).findings
    assert finding.field == "cache.stride"
    assert Path(finding.write.path).parent.name == name


def test_modules_of_a_library_are_not_taken_for_those_of_the_tree(tmp_path):
    root = tmp_path / "mine"
    root.mkdir()
    for name, text in {
        "__init__": "from . import nn\n",
        "nn": "from torch.nn import Module\nfrom torch.cuda import Stream\nfrom torch.fx import Graph\n",
    }.items():
        (root / f"{name}.py").write_text(text)
    program = Program(read(root, processes=1).modules)
    assert program.module("torch.nn") is None
    assert program.module("mine.nn") is not None


def test_a_process_that_dies_while_it_reads_is_one_error(edited, monkeypatch):
    root = edited()
    monkeypatch.setattr(reading, "ALONE", 0)
    monkeypatch.setattr(reading, "_read", _die)
    with pytest.raises(InputError, match="a process that read it ended early"):
        read(root, processes=2)


def _die(jobs):
    os.kill(os.getpid(), signal.SIGKILL)


SLOW = r"""
import os, sys, time
from pathlib import Path
from staticfire.harness.sync.source import reading

def slow(jobs):
    os.write(1, b"%d\n" % os.getpid())  # in one piece: two write at once
    time.sleep(600)

reading.ALONE, reading._read = 0, slow
reading.read(Path(sys.argv[1]), 2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="impossible: there is no SIGKILL")
def test_when_it_is_killed_the_processes_that_read_for_it_end(edited):
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(edited())], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        pids = [int(process.stdout.readline()) for _ in range(2)]
        process.kill()
        process.wait(30)
        assert all(soon_gone(pid) for pid in pids), pids
    finally:
        process.kill()
        process.stdout.close()
