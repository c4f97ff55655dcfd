"""Flags that a server's own front end takes, apart from the engine: read out of the engine's source."""

import ast
import re
from pathlib import Path
from typing import Any, Final

PLACES: Final = ("entrypoints", "benchmarks")
_FLAG: Final = re.compile(r"--([a-z][a-z0-9-]+)")
_UNEXPECTED: Final = re.compile(r"unexpected keyword argument '(\w+)'")
_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?(?=[kmgt])|\d+)([kKmMgGtT])")
"""As the parser has it: no fractions of the binary multiples."""
_SCALES: Final = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_LISTS: Final = frozenset({
    "logits_processors", "served_model_name", "middleware", "lora_modules", "offload_params", "cpu_offload_params",
    "allowed_media_domains", "numa_bind_nodes", "numa_bind_cpus", "assigned_physical_gpu_ids", "lora_target_modules",
})  # fmt: skip
"""Flags that take several words, of which a scan that sees one makes a text."""
_COUNTS: Final = ("max_", "num_", "long_", "block_size")


def names(package: Path) -> frozenset[str]:
    """Keywords of the front end: fields of its classes, and flags that its parsers add.

    Args:
        package: The folder of the engine's package.
    """
    found: set[str] = set()
    for place in PLACES:
        for file in sorted((package / place).rglob("*.py")):
            try:
                data = file.read_bytes()
                if b"add_argument" in data or b"class " in data:
                    found.update(_names(ast.parse(data)))
            except (OSError, SyntaxError, ValueError, RecursionError):
                continue
    return frozenset(found)


def _names(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            fields = [item.target for item in node.body if isinstance(item, ast.AnnAssign)]
            found.update(target.id for target in fields if isinstance(target, ast.Name))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            for text in node.args:
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    found.update(flag.replace("-", "_") for flag in _FLAG.findall(text.value))
    return found


def unexpected(message: str) -> str:
    """The keyword that a constructor did not expect; empty for another message."""
    found = _UNEXPECTED.search(message)
    return found.group(1) if found else ""


def parsed(arguments: dict[str, Any]) -> dict[str, Any]:
    """Values as the command line's parser reads them: `32k` is 32000, `32K` is 32768, `auto` stands for -1."""
    return {name: _parsed(name, value) for name, value in arguments.items()}


def _parsed(name: str, value: Any) -> Any:
    if name in _LISTS and isinstance(value, str | int):
        return [value]
    if not isinstance(value, str):
        return value
    if not name.startswith(_COUNTS):
        return value
    if value in {"auto", "-1"} and name == "max_model_len":
        return -1
    found = _NUMBER.fullmatch(value)
    return int(float(found.group(1)) * _SCALES[found.group(2)]) if found else value
