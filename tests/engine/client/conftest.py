"""Every test here leaves no process and no folder behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import toy_core


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where folders for sockets are made; short, for the path of a socket has at most 107 bytes."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = toy_core.family()
    yield tmp_path
    assert toy_core.all_end(toy_core.family() - before)
    assert not list(tmp_path.glob("staticfire-*"))
