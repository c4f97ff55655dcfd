import errno
import os

import pytest

from staticfire.harness.files import write_whole
from staticfire.harness.report.registry import FORMATS
from staticfire.harness.report.write import write_reports
from staticfire.harness.run.errors import ReportError


def test_every_format_is_registered_once_with_its_own_file():
    assert list(FORMATS) == ["json", "junit", "html"]
    assert len({form.FILE for form in FORMATS.values()}) == 3


def test_all_formats_are_written_and_nothing_else(record, tmp_path):
    written = write_reports(record, tmp_path, FORMATS.values())
    assert [path.name for path in written] == ["results.json", "junit.xml", "index.html"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.html", "junit.xml", "results.json"]


def test_a_file_is_readable_as_the_umask_says(tmp_path):
    old = os.umask(0o022)
    try:
        write_whole(tmp_path / "a", b"x")
    finally:
        os.umask(old)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("call", ["fsync", "fdopen"])
def test_a_full_disk_leaves_the_former_report_and_no_rubbish(record, tmp_path, monkeypatch, call):
    (tmp_path / "results.json").write_text("former")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(ReportError, match=r"cannot write the report .*results\.json: No space left on device") as error:
        write_reports(record, tmp_path, FORMATS.values())
    assert error.value.path == tmp_path / "results.json"
    assert error.value.exit_code == 3
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    assert (tmp_path / "results.json").read_text() == "former"


def test_a_folder_that_is_gone_is_a_report_error(record, tmp_path):
    with pytest.raises(ReportError, match="No such file or directory"):
        write_reports(record, tmp_path / "gone", FORMATS.values())
