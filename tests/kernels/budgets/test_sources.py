"""What decides a compiled kernel is in its key, and where a kernel stands."""

import pytest

from staticfire.kernels.budgets import sources
from staticfire.kernels.budgets.sources import digest, where


def test_a_kernel_depends_on_what_it_imports_of_ours():
    closure = sources._closure("staticfire.kernels.rms_norm.triton")
    assert {"staticfire.kernels.rms_norm.triton", "staticfire.kernels.narrow"} <= closure
    assert "staticfire.kernels.rotary.triton" not in closure


def test_a_changed_source_changes_the_digest(tmp_path, monkeypatch):
    folder = tmp_path / "op"
    folder.mkdir()
    (tmp_path / "narrow.py").write_text("x = 1\n")
    (folder / "triton.py").write_text("from staticfire.kernels.narrow import x\n\n\ndef _run():\n    pass\n")
    monkeypatch.setattr(sources, "_ROOT", tmp_path)

    def fresh():
        for cached in (digest, sources._path, sources._tree):
            cached.cache_clear()
        return digest("staticfire.kernels.op.triton")

    try:
        before = fresh()
        assert fresh() == before
        (tmp_path / "narrow.py").write_text("x = 2\n")
        assert fresh() != before
        assert where("staticfire.kernels.op.triton:_run") == (folder / "triton.py", 4)
        with pytest.raises(ValueError, match="has no function _walk"):
            where("staticfire.kernels.op.triton:_walk")
    finally:
        for cached in (digest, sources._path, sources._tree):
            cached.cache_clear()


@pytest.mark.parametrize("module", ["json", "staticfire.kernels.no_such_op.triton"])
def test_only_our_own_modules_are_read(module):
    with pytest.raises(ValueError, match="none of our kernels' modules"):
        digest(module)
