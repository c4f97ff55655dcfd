import os
import subprocess
import sys
from pathlib import Path

import pytest

from staticfire.harness.run.errors import RunUsageError
from staticfire.harness.run.folder import RunFolder


def test_it_is_made_with_its_parents(tmp_path):
    with RunFolder(tmp_path / "a" / "b") as folder:
        assert folder.path.is_dir()


def test_two_runs_at_once_are_refused_and_the_first_goes_on(tmp_path):
    with RunFolder(tmp_path):
        with pytest.raises(RunUsageError, match=rf"another run is writing there \(process {os.getpid()}\)"):
            RunFolder(tmp_path).__enter__()
        with pytest.raises(RunUsageError):
            RunFolder(tmp_path).__enter__()
    with RunFolder(tmp_path):
        pass


def test_a_killed_run_leaves_no_lock(tmp_path):
    code = "import os, pathlib, sys; from staticfire.harness.run.folder import RunFolder; "
    code += "RunFolder(pathlib.Path(sys.argv[1])).__enter__(); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    with RunFolder(tmp_path):
        pass


def test_a_file_in_the_way_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(RunUsageError, match=f"--out {path}: cannot write there"):
        RunFolder(path).__enter__()
    assert path.read_text() == "mine"


def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    user = os.geteuid()
    if user == 0:  # who may write everywhere
        os.seteuid(65534)
    try:
        with pytest.raises(RunUsageError, match="Permission denied"):
            RunFolder(tmp_path).__enter__()
    finally:
        os.seteuid(user)


def test_a_place_that_takes_no_files_is_refused():
    with pytest.raises(RunUsageError, match="cannot write there"):
        RunFolder(Path("/proc/nowhere")).__enter__()


def test_an_earlier_run_is_set_aside_whole_and_numbered(tmp_path):
    with RunFolder(tmp_path) as folder:
        assert folder.set_aside(["results.json"]) is None
        for number in (1, 2):
            folder.journal.write_text(f"journal {number}")
            (tmp_path / "results.json").write_text(f"results {number}")
            (tmp_path / "mine.txt").write_text("not the run's")
            target = folder.set_aside(["results.json", "junit.xml"])
            assert target is not None
            assert target == tmp_path / "earlier" / f"000{number}"
            assert (target / "journal.jsonl").read_text() == f"journal {number}"
            assert (target / "results.json").read_text() == f"results {number}"
        assert sorted(entry.name for entry in tmp_path.iterdir()) == [".lock", "earlier", "mine.txt"]


@pytest.mark.parametrize("make", [lambda path, _: path.symlink_to(_), lambda path, _: os.link(_, path)])
def test_a_lock_that_leads_to_another_file_is_refused_and_that_file_left_alone(tmp_path, make):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    out = tmp_path / "out"
    out.mkdir()
    make(out / ".lock", victim)
    with pytest.raises(RunUsageError, match=r"\.lock in it is no"):
        RunFolder(out).__enter__()
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_lock_that_is_no_file_is_refused_at_once(tmp_path, make):
    make(tmp_path / ".lock")
    with pytest.raises(RunUsageError):
        RunFolder(tmp_path).__enter__()
