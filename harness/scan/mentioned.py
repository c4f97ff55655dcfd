"""The sites that a file shows by their names alone, reached or not."""

import ast
import re
from collections.abc import Iterable, Iterator

from staticfire.harness.scan import forms
from staticfire.harness.scan.modules import Module
from staticfire.harness.scan.slices import on_self, terminal, walk

_MENTIONED = re.compile(forms.MENTION.pattern.decode())


def site_nodes(module: Module) -> Iterator[ast.expr]:
    """Every call by a constructing name, and every list that starts an engine's command."""
    if not module.mentions:
        return
    renamed = forms.renamed(module.text)
    for node in _mentioning(module, renamed):
        if isinstance(node, ast.Call):
            target = node.func
            name = terminal(target)
            if (name in forms.NAMES or (name in renamed and isinstance(target, ast.Name))) and not on_self(target):
                yield node
        elif isinstance(node, ast.List) and len(node.elts) >= 2:
            words = [item.value if isinstance(item, ast.Constant) else "" for item in node.elts[:14]]
            if forms.engine_command([word if isinstance(word, str) else "" for word in words]) is not None:
                yield node


def _mentioning(module: Module, renamed: Iterable[str]) -> Iterator[ast.AST]:
    """Nodes of the top-level statements in which a constructing name occurs."""
    lines = module.lines_with(_MENTIONED, forms.OPENINGS)
    for name in renamed:
        lines = sorted({*lines, *module.lines_with(re.compile(rf"\b{name}\s*\("), (name,))})
    index = 0
    for statement in module.tree.body:
        while index < len(lines) and lines[index] < statement.lineno:
            if any(decorator.lineno <= lines[index] for decorator in getattr(statement, "decorator_list", ())):
                break
            index += 1
        if index < len(lines) and lines[index] <= (statement.end_lineno or statement.lineno):
            yield from walk(statement)


__all__ = ["site_nodes"]
