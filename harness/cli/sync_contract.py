"""`staticfire sync --engine NAME --contract`: the properties of the ready response, tried on the engine's own code."""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from importlib import import_module
from typing import Final

from staticfire.harness.cli import FINDINGS, OK
from staticfire.harness.cli.streams import echo, echo_json
from staticfire.harness.errors import InputError
from staticfire.harness.files import default_cache_dir
from staticfire.harness.sync.contract.base import Subject

LACKS: Final = (
    "--contract draws its examples with Hypothesis, which is not installed here: pip install 'staticfire[pytest]'."
)


def contract(
    engine: str, python: str | None, shape: str, *, examples: int, seconds: float, accept: Sequence[str]
) -> int:
    """Hold an engine's ready response to its contract, print what was found, and say whether it stands.

    Args:
        engine: `vllm` or `reference`.
        python: The interpreter that has vLLM.
        shape: `text` or `json`.
        examples: How many examples of each property and field.
        seconds: When to stop trying.
        accept: What the user accepts, as typed.

    Raises:
        InputError: The engine is beyond the contract, or an option is wrong.
    """
    if "hypothesis" not in sys.modules:  # it would make a folder of its own where the user stands
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(default_cache_dir() / "hypothesis"))
    try:
        import_module("hypothesis")
    except ModuleNotFoundError as error:
        raise InputError(LACKS) from error
    from staticfire.harness.sync.contract.audit import accepted, audit
    from staticfire.harness.sync.contract.text import as_json, render

    allowed = accepted(accept)
    with closing(_subject(engine, python)) as subject:
        report = audit(subject, examples=examples, seconds=seconds, accept=allowed, say=_say)
    if shape == "json":
        echo_json(json.dumps(as_json(report), indent=2))
    else:
        echo(render(report))
    return FINDINGS if report.standing else OK


def _subject(engine: str, python: str | None) -> Subject:
    if engine == "reference":
        from staticfire.harness.sync.contract.reference import ReferenceSubject

        return ReferenceSubject()
    from staticfire.harness.sync.contract.vllm import VllmSubject

    return VllmSubject(python or sys.executable, say=_say)


def _say(text: str) -> None:
    """Tell a person how far it is; a file or a pipe is not told."""
    if sys.stderr.isatty():
        echo(text, err=True)
