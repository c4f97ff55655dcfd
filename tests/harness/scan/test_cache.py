"""Results that are kept: equal to fresh ones, and dropped when anything they rest on changes."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness import stamps
from staticfire.harness.scan import scan as module
from staticfire.harness.scan.base import Scan, ScanConfig
from staticfire.harness.scan.cache import decode, encode

FILES = {
    "pyproject.toml": "",
    "conftest.py": "import pytest\nfrom tools import Runner\n@pytest.fixture\ndef vllm_runner():\n    return Runner\n",
    "tools.py": "from vllm import LLM\nclass Runner:\n    def __init__(self, model, size=16):\n"
    "        self.llm = LLM(model, block_size=size)\n",
    "test_a.py": "import pytest\n@pytest.mark.parametrize('n', [1, None])\ndef test_a(vllm_runner, n, monkeypatch):\n"
    "    monkeypatch.setenv('VLLM_A', 'b')\n    with pytest.raises(ValueError, match='x'):\n"
    "        vllm_runner('m/one')\n"
    "    vllm_runner(foreign())\n",
    "run.sh": "vllm serve m/two --port 1\n",
    "broken.py": "LLM(\n",
}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def read(suite: Path) -> Scan:
    return module.scan([suite], config=ScanConfig(cache_dir=suite.parent / "cache"))


def block_size(result: Scan) -> object:
    (site,) = (site for site in result.sites if site.form == "vllm_runner" and site.negative)
    return site.configurations[0].keywords["block_size"].value


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(module.Reader, "_file", fail)


def test_an_unchanged_suite_is_not_read_again(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read(suite)
    forbid(monkeypatch)
    assert read(suite) == first


def test_kept_results_are_those_of_a_fresh_scan(suite: Path) -> None:
    read(suite)
    assert read(suite) == module.scan([suite])


def test_numbers_of_any_size_are_kept_as_they_are(suite: Path) -> None:
    # Python writes no integer of more than 4300 digits in decimals.
    for size in (2**63, -(2**70), 16**5000):
        (suite / "test_n.py").write_text(f"from vllm import LLM\nLLM('m/three', block_size={size:#x})\n")
        read(suite)
        (site,) = (site for site in read(suite).sites if site.where.path.endswith("test_n.py"))
        assert site.configurations[0].keywords["block_size"].value == size


def test_a_change_of_what_is_imported_is_seen(suite: Path) -> None:
    assert block_size(read(suite)) == 16
    (suite / "tools.py").write_text(FILES["tools.py"].replace("16", "32"))
    assert block_size(read(suite)) == 32


def test_a_new_conftest_is_seen(suite: Path) -> None:
    inner = suite / "inner"
    inner.mkdir()
    (suite / "test_a.py").rename(inner / "test_a.py")
    assert block_size(read(suite)) == 16
    own = FILES["tools.py"].replace("16", "8")
    (inner / "conftest.py").write_text(own + FILES["conftest.py"].replace("from tools import Runner\n", ""))
    assert block_size(read(suite)) == 8


def edited_while_read(monkeypatch: pytest.MonkeyPatch, file: Path, text: str) -> None:
    """Change a file right after its bytes were taken, leaving its size and its time of change as they were."""
    read_bytes = Path.read_bytes

    def take(self: Path) -> bytes:
        data = read_bytes(self)
        if self == file and data != text.encode():
            times = file.stat()
            file.write_text(text)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        return data

    monkeypatch.setattr(Path, "read_bytes", take)


@pytest.mark.parametrize("name", ["tools.py", "test_a.py", "run.sh"])
@pytest.mark.parametrize("old", [True, False], ids=["settled", "fresh"])
def test_an_edit_while_a_file_is_read_is_seen(
    name: str, old: bool, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in suite.iterdir() if old else ():
        os.utime(file, (1, 1))
    edits = {"tools.py": ("size=16", "size=32"), "test_a.py": ("m/one", "m/new"), "run.sh": ("m/two", "m/six")}
    text = FILES[name].replace(*edits[name])
    with monkeypatch.context() as patch:
        edited_while_read(patch, suite / name, text)
        read(suite)
    assert (suite / name).read_text() == text
    assert read(suite) == module.scan([suite])


def test_an_edit_within_one_tick_of_the_clock_is_seen(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system that counts in seconds: an edit of equal length leaves all of the times alone."""
    coarse = stamps._times

    def times(path: Path) -> tuple[int, int, int, int]:
        size, changed, _, node = coarse(path)
        return size, changed // 10**9 * 10**9, changed // 10**9 * 10**9, node

    monkeypatch.setattr(stamps, "_times", times)
    assert block_size(read(suite)) == 16
    before = (suite / "tools.py").stat()
    (suite / "tools.py").write_text(FILES["tools.py"].replace("size=16", "size=32"))
    os.utime(suite / "tools.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert block_size(read(suite)) == 32


def test_what_was_kept_keeps_its_stamp(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second scan reads one file anew, and another one changes meanwhile: its result is of before."""
    read(suite)
    (suite / "run.sh").write_text("vllm serve m/ten\n")
    with monkeypatch.context() as patch:
        take = Path.read_bytes

        def change(self: Path) -> bytes:
            if self.name == "run.sh":
                (suite / "tools.py").write_text(FILES["tools.py"].replace("16", "64"))
            return take(self)

        patch.setattr(Path, "read_bytes", change)
        read(suite)
    assert block_size(read(suite)) == 64


def test_texts_that_utf8_cannot_hold_are_kept(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "from vllm import LLM\n"
        "LLM('\\ud800', tokenizer='\\0\\udfff', hf_overrides={'\\udc80': ['\\ud83d', 'é', '\\0x']})\n"
    )
    (suite / "test_b.py").write_text(source)
    first = read(suite)
    (site,) = (site for site in first.sites if site.form == "LLM" and site.where.path.endswith("test_b.py"))
    assert site.configurations[0].model == "\ud800"
    forbid(monkeypatch)
    assert read(suite) == first


TEXT = st.text(st.characters(), max_size=4) | st.text("\0a\ud800\udfffé", max_size=4)
PLAIN = st.recursive(
    TEXT | st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)


@given(PLAIN)
def test_what_is_encoded_is_decoded(document: object) -> None:
    assert decode(encode(document)) == document


@pytest.mark.parametrize("damage", [b"", b"\x00", b"\x81\xa5files\x01", b"x" * 100])
def test_a_damaged_cache_is_only_slower(suite: Path, damage: bytes) -> None:
    first = read(suite)
    (kept,) = (suite.parent / "cache").glob("scan-*.msgpack")
    kept.write_bytes(damage)
    assert read(suite) == first


def test_a_cache_that_cannot_be_written_is_no_fault(suite: Path) -> None:
    (suite.parent / "cache").write_text("in the way")
    assert read(suite).sites


def test_old_caches_are_dropped(suite: Path) -> None:
    cache = suite.parent / "cache"
    cache.mkdir()
    for index in range(20):
        path = cache / f"scan-{index}.msgpack"
        path.touch()
        os.utime(path, (index, index))
    read(suite)
    assert len(list(cache.glob("scan-*"))) == 8


def test_two_processes_find_what_one_does(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WORTHWHILE", 1)
    assert module.scan([suite], config=ScanConfig(processes=2)) == module.scan([suite])


def test_what_one_file_costs_is_not_taken_from_another(suite: Path) -> None:
    # Who asks first for the costly names would pay for them, and have no steps left for its own.
    (suite / "costly.py").write_text("".join(f"N{n} = sum([i * i for i in range(900)])\n" for n in range(40)))
    listed = ", ".join(f"N{n}" for n in range(40))
    source = "from costly import *\nfrom vllm import LLM\n" + "".join(
        f"def test_{n}():\n    LLM('m/b', seed=sum([i * {n} for i in range(900)]), hf_overrides=[{listed}])\n"
        for n in range(40)
    )
    for name in ("test_1.py", "test_2.py"):
        (suite / name).write_text(source)
    assert not module.scan([suite / "test_2.py"]).unread
    assert not module.scan([suite / "test_1.py", suite / "test_2.py"]).unread
