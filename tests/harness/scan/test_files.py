"""Which files are read: regular ones, once each, by the name that led there first."""

import os
import socket
from pathlib import Path

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.scan.base import Scan, ScanConfig
from staticfire.harness.scan.scan import scan

SITE = "from vllm import LLM\ndef test_a():\n    LLM('m/one')\n"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with one site in `t/test_a.py`."""
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "test_a.py").write_text(SITE)
    (tmp_path / "u").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def places(result: Scan) -> list[str]:
    return [site.where.path for site in result.sites]


@pytest.mark.parametrize(
    ("paths", "name"),
    [
        (["t", "t/test_a.py", "t/../t", "t"], "t/test_a.py"),
        (["t/../t"], "t/test_a.py"),
        (["./t/./test_a.py", "t//"], "t/test_a.py"),
        (["u/../t", "."], "t/test_a.py"),
        (["linked", "t"], "linked/test_a.py"),
        (["t", "linked"], "t/test_a.py"),
        (["linked/../t", "t"], "t/test_a.py"),
    ],
)
def test_a_file_counts_once_by_its_first_name(paths: list[str], name: str, suite: Path) -> None:
    (suite / "linked").symlink_to("t")
    result = scan(paths)
    assert places(result) == [name]
    assert result.files == {"python": 1}


def test_behind_a_link_the_folder_above_is_that_of_its_target(suite: Path, tmp_path: Path) -> None:
    (suite / "u" / "inner").mkdir()
    (suite / "u" / "test_b.py").write_text(SITE)
    (suite / "t" / "linked").symlink_to(suite / "u" / "inner")
    assert places(scan(["t/linked/.."])) == ["u/test_b.py"]


def test_links_to_a_file_that_is_read_anyway_add_nothing(suite: Path) -> None:
    (suite / "t" / "a_link.py").symlink_to("test_a.py")
    (suite / "u" / "link.py").symlink_to("../t/test_a.py")
    assert places(scan(["."])) == ["t/test_a.py"]
    assert places(scan(["u", "t"])) == ["t/test_a.py"]


def test_a_link_to_a_file_elsewhere_is_read_by_its_own_name(suite: Path) -> None:
    (suite / "u" / "link.py").symlink_to("../t/test_a.py")
    assert places(scan(["u"])) == ["u/link.py"]


def special(folder: Path) -> dict[str, str]:
    """One of everything that is no regular file, and what is said of it."""
    os.mkfifo(folder / "pipe.py")
    (folder / "round.sh").symlink_to("round.sh")
    (folder / "gone.yaml").symlink_to("nowhere.yaml")
    (folder / "zero.yml").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as endpoint:
        os.chdir(folder)  # a socket's whole path is short
        endpoint.bind("socket.py")
    return {
        "pipe.py": "named pipe",
        "round.sh": "symbolic links",
        "gone.yaml": "No such file",
        "zero.yml": "device",
        "socket.py": "socket",
    }


@pytest.mark.timeout(20)
def test_only_regular_files_are_read(suite: Path) -> None:
    said = special(suite / "t")
    os.chdir(suite)
    result = scan(["t"], config=ScanConfig(cache_dir=suite / "cache"))
    assert places(result) == ["t/test_a.py"]
    assert {note.path.removeprefix("t/") for note in result.unread} == set(said)
    for note in result.unread:
        assert said[note.path.removeprefix("t/")] in note.why


@pytest.mark.timeout(20)
def test_a_conftest_or_an_import_that_is_a_pipe_is_not_opened(suite: Path) -> None:
    os.mkfifo(suite / "t" / "conftest.py")
    os.mkfifo(suite / "t" / "helper.py")
    (suite / "t" / "test_a.py").write_text("from helper import X\n" + SITE.replace("'m/one'", "X"))
    assert places(scan(["t"])) == ["t/test_a.py"]


@pytest.mark.timeout(20)
def test_what_is_named_and_cannot_be_read_is_one_error_about_all(suite: Path) -> None:
    special(suite / "t")
    os.chdir(suite)
    with pytest.raises(InputError) as error:
        scan(["t", "t/pipe.py", "t/round.sh", "t/absent.py"])
    assert all(name in str(error.value) for name in ("pipe.py is a named pipe", "round.sh", "absent.py"))
    assert "test_a" not in str(error.value)


def test_a_named_file_of_another_kind_is_said(suite: Path) -> None:
    (suite / "t" / "README.md").touch()
    (note,) = scan(["t", "t/README.md"]).unread
    assert note.path == "t/README.md"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_listed_is_said(suite: Path) -> None:
    (suite / "u").chmod(0)
    (note,) = scan(["."]).unread
    (suite / "u").chmod(0o755)
    assert note.path == "u"


def test_names_that_are_not_utf8(suite: Path) -> None:
    odd = os.fsdecode(b"test_\xff.py")
    (suite / "t" / odd).write_text(SITE)
    config = ScanConfig(cache_dir=suite / "cache")
    first = scan(["t"], config=config)
    assert places(first) == ["t/test_a.py", f"t/{odd}"]
    assert scan(["t"], config=config) == first
