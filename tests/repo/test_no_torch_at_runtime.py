"""The verbs that promise to be light import no heavy library when they really run."""

import json
import subprocess
import sys

import pytest

from staticfire.harness.cli import VERBS

HEAVY = ["torch", "transformers", "triton", "tokenizers", "safetensors", "huggingface_hub", "numpy"]
PROBE = """
import json, sys
from staticfire.harness.cli import main
code = main(sys.argv[1:])
print(json.dumps({"code": code, "modules": sorted(sys.modules)}), file=sys.stderr)
"""


def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(done.stderr.splitlines()[-1])


COMMANDS = {
    "help": (["--help"], "explain"),
    "version": (["--version"], "staticfire"),
    "matrix": (["matrix", "hybrid"], "jamba-tiny"),
    "matrix-json": (["matrix", "hybrid", "--format", "json"], '"cells"'),
    "check-help": (["check", "--help"], "--engine-python"),
    "explain": (["explain", "jamba-tiny"], "block_size"),
    "explain-json": (["explain", "jamba-tiny", "--json"], '"violations"'),
    "explain-help": (["explain", "--help"], "mamba"),
    "rules": (["rules"], "SF1"),
    "rule": (["rule", "SF101"], "SF101"),
    "run-help": (["run", "--help"], "--resume"),
}


@pytest.mark.parametrize(("arguments", "shown"), COMMANDS.values(), ids=COMMANDS.keys())
def test_a_light_verb_imports_nothing_heavy(arguments, shown):
    out, state = run(*arguments)
    assert state["code"] == 0
    assert shown in out  # the verb did its work and did not stop before it
    assert [name for name in HEAVY if name in state["modules"]] == []


def test_the_probe_can_see_a_heavy_library():
    out, state = run("--version")
    assert "click" in state["modules"]
    done = subprocess.run(
        [sys.executable, "-c", "import numpy, json, sys\n" + PROBE, "--version"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "numpy" in json.loads(done.stderr.splitlines()[-1])["modules"]
    assert out == done.stdout


def test_help_imports_none_of_the_verbs_nor_their_libraries():
    _, state = run("--help")
    assert [name for name in ("pydantic", "rich", "jinja2", "msgspec") if name in state["modules"]] == []
    verbs = {target.partition(":")[0] for target, _ in VERBS.values()}
    assert verbs
    assert verbs.isdisjoint(state["modules"])
