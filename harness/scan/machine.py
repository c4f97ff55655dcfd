"""What every stage of the interpreter shares: its state, and the operations that later stages provide."""

import ast
from collections.abc import Iterable
from typing import Any

from staticfire.harness.scan.base import ScanConfig
from staticfire.harness.scan.modules import Sources
from staticfire.harness.scan.state import Frame, Run, Signal
from staticfire.harness.scan.values import Function, Keys


class Machine:
    """State of the interpreter, whose stages derive from each other; the last one is `Interpreter`.

    Attributes:
        sources: The files.
        config: What may be assumed.
        run: The run in progress.
        budget: What may be spent on the current file.
        dead: Branches of the current file that a decided condition rules out: first and last line, the condition.
    """

    def __init__(self, sources: Sources, config: ScanConfig) -> None:
        self.sources = sources
        self.config = config
        self.run = Run()
        self.budget = config.limits.budget()
        self.dead: dict[int, tuple[str, int, int, str]] = {}
        self._reach: dict[str, frozenset[str]] = {}
        self._reaching: set[str] = set()
        self._small: dict[tuple[str, str], bool] = {}
        self._memo: dict[tuple[Any, ...], tuple[Any, Function, list[tuple[str, int, int]]]] = {}

    # Evaluation is recursive: these are what an earlier stage asks of a later one.

    def assign(self, target: ast.expr, value: Any, frame: Frame) -> None:
        """Bind a target to a value."""
        raise NotImplementedError

    def evaluate(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression."""
        raise NotImplementedError

    def execute(self, body: Iterable[ast.stmt], frame: Frame) -> Signal:
        """Run statements."""
        raise NotImplementedError

    def call_function(self, function: Function, args: list[Any], keywords: Keys, given: Any = None) -> Any:
        """Run a function."""
        raise NotImplementedError

    def apply(self, target: Any, args: list[Any], keywords: Keys, node: ast.Call, frame: Frame) -> Any:
        """Call a value."""
        raise NotImplementedError

    def attribute(self, base: Any, name: str, node: ast.expr, frame: Frame) -> Any:
        """An attribute of a value."""
        raise NotImplementedError

    def fixture_value(self, name: str) -> Any:
        """The value of a fixture for the test in progress."""
        raise NotImplementedError
