"""Calls that construct an engine, counted by name over syntax trees; shares nothing with the scanner."""

import ast
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

FORMS = {
    "vllm_runner": ("vllm_runner", "VllmRunner"),
    "LLM": ("LLM",),
    "EngineArgs": ("EngineArgs",),
    "AsyncEngineArgs": ("AsyncEngineArgs",),
    "VllmConfig": ("VllmConfig",),
    "RemoteOpenAIServer": (
        "RemoteOpenAIServer",
        "RemoteVLLMServer",
        "RemoteLaunchRenderServer",
        "RemoteOpenAIServerCustom",
    ),
    "compare_settings": ("compare_two_settings", "compare_all_settings"),
}
FORM = {name: form for form, names in FORMS.items() for name in names}


def calls(files: Iterable[Path]) -> Counter[str]:
    """Form -> calls of its names, under whatever name they are imported; methods of `self` and `cls` are none."""
    total: Counter[str] = Counter()
    for file in files:
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError):
            continue
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        known = {alias.asname: alias.name for node in imports for alias in node.names if alias.asname}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                total[FORM.get(_name(node.func, known), "")] += 1
    del total[""]
    return total


def _name(called: ast.expr, known: dict[str, str]) -> str:
    match called:
        case ast.Name(name):
            return known.get(name, name)
        case ast.Attribute(ast.Name("self" | "cls"), _):
            return ""
        case ast.Attribute(_, name):
            return name
    return ""
