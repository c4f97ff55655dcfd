"""Runs pytest on a suite in a folder of its own, in a process of its own, and reads what became of each test."""

import os
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

OURS = ("STATICFIRE_", "PYTEST_", "HYPOTHESIS_", "BUILDKITE", "CI")


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        code: pytest's exit code.
        text: Everything it printed.
        outcomes: `classname::name` of each test -> passed, failed, error or skipped.
        properties: The same -> its properties.
    """

    code: int
    text: str
    outcomes: dict[str, str]
    properties: dict[str, dict[str, str]]

    def count(self, outcome: str) -> int:
        """Tests with an outcome."""
        return sum(found == outcome for found in self.outcomes.values())


class Suite:
    """Test files in a folder; `run` calls pytest there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "pytest.ini").write_text("[pytest]\njunit_family = xunit2\n")

    def write(self, name: str, text: str) -> Path:
        """Write a file, without the text's own indentation."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    def run(self, *arguments: str, collector: bool = False, **environment: str) -> Run:
        """Run pytest; `PYTHONPATH` and the like come from the environment of the test."""
        report = self.folder / "junit.xml"
        report.unlink(missing_ok=True)
        base = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        base |= {name: os.environ[name] for name in ("STATICFIRE_CACHE",) if name in os.environ}
        without = [] if collector else ["-p", "no:buildkite-test-collector"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *without, f"--junitxml={report}", "-o", "junit_family=xunit1", *arguments],
            cwd=self.folder,
            env={**base, "PYTHONSAFEPATH": "1", "COLUMNS": "300", **environment},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
        )
        cases = list(ET.parse(report).iter("testcase")) if report.exists() else []
        names = [f"{case.get('classname')}::{case.get('name')}" for case in cases]
        return Run(
            done.returncode,
            done.stdout,
            {name: _outcome(case) for name, case in zip(names, cases, strict=True)},
            {
                name: {str(one.get("name")): str(one.get("value")) for one in case.iter("property")}
                for name, case in zip(names, cases, strict=True)
            },
        )


def _outcome(case: ET.Element) -> str:
    for tag, outcome in (("error", "error"), ("failure", "failed"), ("skipped", "skipped")):
        if case.find(tag) is not None:
            return outcome
    return "passed"
