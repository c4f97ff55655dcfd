"""What an engine core has its workers do: methods that it tells them by name, and functions that it hands to them."""

from collections.abc import Sequence
from typing import NamedTuple

from staticfire.harness.sync.source.facts import Class, Function
from staticfire.harness.sync.source.graph import COMMON, Graph
from staticfire.harness.sync.source.inference import Code


class Telling(NamedTuple):
    """One thing that workers are told to do.

    Attributes:
        teller: Who tells them.
        target: What runs in them.
        handed: Whether the function itself is handed over, rather than named.
    """

    teller: Function
    target: Function
    handed: bool


def tellings(graph: Graph, functions: Sequence[Function], families: set[Class]) -> list[Telling]:
    """What workers are told.

    Args:
        graph: Calls.
        functions: Those of the engine core.
        families: Classes of those that tell, and what they inherit from: they are not told.
    """
    program = graph.program
    found: list[Telling] = []
    tells: set[str] = set()
    for function in functions:
        for call in function.calls:
            name = call.args[0][1:] if call.args and call.args[0].startswith("'") else ""
            if name in program.named and name not in COMMON and _ours(graph, call.func, function):
                tells.add(call.func.rpartition(".")[2])
                for method in program.named[name]:
                    cls = program.class_of(method)
                    if cls is None or not families & {*program.line(cls)}:
                        found.append(Telling(function, method, False))
    for function in functions:
        for call in function.calls:
            if call.func.rpartition(".")[2] in tells and call.args and not call.args[0].startswith("'"):
                found += [
                    Telling(function, value.function, True)
                    for value in graph.inference.of(call.args[0], function)
                    if isinstance(value, Code) and not value.function.owner
                ]
    return found


def _ours(graph: Graph, func: str, function: Function) -> bool:
    return any(isinstance(value, Code) for value in graph.inference.of(func, function))
