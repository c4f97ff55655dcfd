"""transformers imports from the root of a checkout, where a folder has the name of a package it looks for."""

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.slow]

UNSAFE = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}


def run(code, folder):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=UNSAFE, capture_output=True, text=True, check=False)


def test_without_isolation_our_folder_poses_as_the_package(repo_root):
    """The premise: were this to fail, the test below would prove nothing."""
    done = run("import kernels; print(kernels.__file__)", repo_root)
    assert done.stdout.strip() == str(repo_root / "kernels" / "__init__.py"), done.stderr


@pytest.mark.parametrize("entry", ["", ".", "{root}", "{root}/../{name}"])
def test_the_root_is_taken_off_the_path(repo_root, entry):
    entry = entry.format(root=repo_root, name=repo_root.name)
    code = f"""
import sys
sys.path.insert(0, {entry!r})
from staticfire.harness.oracle.isolation import take_root_off_path
import kernels
take_root_off_path()
assert "kernels" not in sys.modules
try:
    import kernels
except ModuleNotFoundError:
    print("gone")
else:
    print(kernels.__file__)
"""
    done = run(code, repo_root)
    assert done.stdout.strip() == "gone", done.stdout + done.stderr


def test_transformers_imports_beside_a_kernels_distribution_of_a_version_it_accepts(repo_root, tmp_path):
    """With the metadata there and our folder in its place, transformers dies importing names from it."""
    metadata = tmp_path / "kernels-0.18.5.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: kernels\nVersion: 0.18.5\n")
    (metadata / "top_level.txt").write_text("kernels\n")
    code = f"""
import sys
sys.path.append({str(tmp_path)!r})
from staticfire.harness.oracle.isolation import import_transformers
transformers = import_transformers()
from transformers import JambaForCausalLM
print("imported", "kernels" in sys.modules)
"""
    done = run(code, repo_root)
    assert done.stdout.strip() == "imported False", done.stdout + done.stderr
