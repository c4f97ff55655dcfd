import importlib.metadata
import subprocess
import sys
from pathlib import Path

from staticfire import __version__
from staticfire.harness.run import identity as module
from staticfire.harness.run.identity import content_digest, current_identity, versions


def test_differences_name_what_changed(identity):
    import msgspec

    changed = msgspec.structs.replace(identity, digest="e" * 64, versions={"staticfire": "0.1.0", "torch": "2.9.0"})
    assert identity.differences(identity) == []
    assert identity.differences(changed) == [
        "matrix digest: dddddddddddd, now eeeeeeeeeeee",
        "torch: absent, now 2.9.0",
    ]
    assert changed.differences(identity)[-1] == "torch: 2.9.0, now absent"
    moved = msgspec.structs.replace(identity, kernel_backend="triton")
    assert identity.differences(moved) == ["--kernel-backend: none, now triton"]


def test_versions_are_those_installed():
    found = versions()
    assert found["staticfire"] == __version__
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["torch"] == importlib.metadata.version("torch")


def test_content_follows_every_source_and_name(tmp_path, monkeypatch):
    package = tmp_path / "engine"
    (package / "deep").mkdir(parents=True)
    (package / "deep" / "a.py").write_text("x = 1")
    monkeypatch.setattr(module, "files", lambda _: package)
    digests = {content_digest(["engine"])}
    for name, text in [
        ("deep/a.py", "x = 2"),
        ("deep/b.py", ""),
        ("matrix.toml", ""),
        ("deep/c.json", "1"),
    ]:
        (package / name).write_text(text)
        digests.add(content_digest(["engine"]))
    assert len(digests) == 5
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "a.py").write_text("")
    (package / "notes.md").write_text("")
    assert content_digest(["engine"]) in digests


def test_it_covers_the_package_and_imports_nothing_heavy():
    code = "import sys; from staticfire.harness.run.identity import current_identity as c; "
    code += "i = c('m', 'd', 'j:j'); print(i.content, 'torch' in sys.modules, 'transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    content, torch, transformers = done.stdout.split()
    assert (torch, transformers) == ("False", "False")
    assert len(content) == 64
    assert current_identity("m", "d", "j:j").matrix == "m"
    assert {entry.name for entry in Path(module.__file__).parents[2].iterdir()} >= set(module.PACKAGES)
