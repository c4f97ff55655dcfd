"""Copies of the package, with and without a fault, each asked by `staticfire run hybrid` itself."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from planted.table import ROOT, Fault

MATRIX: Final = "hybrid"
PACKAGES: Final = ("engine", "harness", "kernels", "matrices", "src")
LIMIT_S: Final = 900.0
"""For one run; a hang counts as a fault that was not seen."""


@dataclass(frozen=True)
class Fate:
    """What the matrix made of one fault.

    Attributes:
        seen: Whether it is red for the right reason.
        verdict: Of its cell.
        message: The failure that shows the fault; else why it counts as unseen.
        seconds: How long the run took.
    """

    seen: bool
    verdict: str
    message: str
    seconds: float


class ReplayError(Exception):
    """The replay proves nothing: the copy is not what ran, or the sound engine fails."""


@contextmanager
def copy_of_the_package() -> Iterator[Path]:
    """A folder with the package as the checkout has it; the links below `src` lead into the copy."""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        root = Path(folder)
        for name in PACKAGES:
            shutil.copytree(
                ROOT / name, root / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
            )
        yield root


def cells(root: Path) -> frozenset[str]:
    """Ids of the cells that the matrix of a copy runs."""
    listed = _staticfire(root, "matrix", MATRIX, "--format", "ids").stdout.split()
    if not listed:
        raise ReplayError(f"staticfire matrix {MATRIX} lists no cell")
    return frozenset(listed)


def try_fault(fault: Fault, cache: Path | None = None) -> Fate:
    """Run a fault's cell in a copy with the fault."""
    with copy_of_the_package() as root:
        for edit in fault.edits:
            edit.apply(root)
        started = time.perf_counter()
        (result,) = run(root, [fault.cell], cache).values()
    return judge(fault, result, time.perf_counter() - started)


def judge(fault: Fault, result: Mapping[str, Any], seconds: float) -> Fate:
    """Whether the result of a cell shows the fault, where and as it must."""
    verdict = str(result["verdict"])
    detail = result.get("detail") or {}
    told = [(str(failure.get("run", "")), str(failure.get("message", ""))) for failure in _list(detail)]
    told += [(str(name), str(why)) for name, why in (detail.get("vacuous") or {}).items()]
    here = [f"{run}: {message}" for run, message in told if relation_of(run) == fault.seen_by]
    fitting = [message for message in here if fault.says in message]
    if verdict == "failed" and fitting:
        return Fate(True, verdict, fitting[0], seconds)
    others = ", ".join(dict.fromkeys(relation_of(run) for run, _ in told))
    why = f"{fault.seen_by} says nothing{f', but {others} does' if others else ''}"
    if here:
        why = f"not with the words {fault.says!r}: {here[0]}"
    return Fate(False, verdict, str(detail.get("error") or why), seconds)


def relation_of(run: str) -> str:
    """The relation that a run belongs to: several runs of one are told apart after a comma."""
    return run.split(",", maxsplit=1)[0]


def _list(detail: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = detail.get("failures")
    return found if isinstance(found, list) else []


def run(root: Path, wanted: Sequence[str], cache: Path | None = None, jobs: int = 1) -> dict[str, Mapping[str, Any]]:
    """Run cells of the matrix with the package in a copy; cell id -> its result.

    Raises:
        ReplayError: The run ended without results, or another package than that of the copy was run.
    """
    out = root / "report"
    chosen = [part for cell in wanted for part in ("--cell", cell)]
    done = _staticfire(root, "run", MATRIX, *chosen, "-j", str(jobs), "--out", str(out), cache=cache)
    try:
        report = json.loads((out / "results.json").read_text(encoding="utf-8"))
    except OSError:
        raise ReplayError(f"staticfire run wrote no results:\n{done.stdout}\n{done.stderr}") from None
    ran = _staticfire(root, "-c", "import staticfire.engine as e; print(e.__file__)").stdout.strip()
    if not Path(ran).resolve().is_relative_to(root.resolve()):
        raise ReplayError(f"the package that ran is {ran}, not the copy in {root}")
    found = {str(result["id"]): result for result in report["cells"]}
    red = any(result["verdict"] not in ("passed", "refused as expected") for result in found.values())
    if done.returncode != int(red):
        raise ReplayError(f"staticfire run ended with {done.returncode}, and its report says {found}")
    return found


def _staticfire(root: Path, *arguments: str, cache: Path | None = None) -> "subprocess.CompletedProcess[str]":
    code = ("-c",) if arguments[0] == "-c" else ("-m", "staticfire")
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    if cache is not None:
        environment["STATICFIRE_CACHE"] = str(cache)
    return subprocess.run(
        [sys.executable, *code, *arguments[arguments[0] == "-c" :]],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
