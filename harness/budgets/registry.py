"""The formats of `staticfire kernels`, one line each."""

from collections.abc import Callable, Mapping
from typing import Final

from staticfire.harness.budgets import buildkite, document, sarif, text
from staticfire.harness.budgets.report import Report

FORMATS: Final[Mapping[str, Callable[[Report], str]]] = {
    module.NAME: module.render for module in (text, document, sarif, buildkite)
}
