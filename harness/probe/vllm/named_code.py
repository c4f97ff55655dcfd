"""Which arguments of vLLM name code, and how a configuration is asked without that code being loaded.

A suite may type the name of a class, a module or a file that vLLM imports. What is only read must not be run, so the
engine is asked without the argument, as far as that leaves a question, and whoever asks says so. What belongs to vLLM
itself (`vllm.v1.core.sched.scheduler.Scheduler`) is asked as it stands.

Derived from every `import_module`, `import_from_path`, `import_plugin`, `resolve_obj_by_qualname`, `__import__` and
plugin group of 0.27.1, 0.28.0 and 0.33.0. A name that is not listed here is stopped where it would be loaded, by
`agent/guard.py`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

OWN: Final = "vllm."
"""How names of the engine's own code begin."""


@dataclass(frozen=True, slots=True)
class Named:
    """An argument that names code.

    Attributes:
        loads: What the engine loads by it.
        whole: Whether the argument that holds it is left out with it, since the rest means nothing without.
        plain: Values that name no code.
        dotted: Whether only a text with a dot or a colon names code.
        inside: Names of what holds it; empty where it is the same everywhere.
    """

    loads: str
    whole: bool = False
    plain: frozenset[str] = frozenset()
    dotted: bool = False
    inside: frozenset[str] = frozenset()


FIELDS: Final[Mapping[str, Named]] = {
    "scheduler_cls": Named("the scheduler's class"),
    "worker_cls": Named("the worker's class", plain=frozenset({"auto"})),
    "sd_worker_cls": Named("the class of a speculative worker", plain=frozenset({"auto"})),
    "worker_extension_cls": Named("a class that the worker inherits from"),
    "distributed_executor_backend": Named(
        "the executor's class", plain=frozenset({"ray", "mp", "uni", "external_launcher"}), dotted=True
    ),
    "logits_processors": Named("classes of logits processors"),
    "io_processor_plugin": Named("a plugin by the name of its entry point"),
    "model_class_overrides": Named("classes of models"),
    "reasoning_parser_plugin": Named("a file or module that registers parsers"),
    "tool_parser_plugin": Named("a file or module that registers parsers"),
    "middleware": Named("functions or classes of the server"),
    "log_config_file": Named("a file that names classes of loggers"),
    "pylogging_config_file": Named("a file that names classes of loggers"),
    "kv_connector_module_path": Named("the module of a connector", whole=True),
    "ec_connector_module_path": Named("the module of a connector", whole=True),
    "spec_module_path": Named("the module of an offloading specification", whole=True),
    "encoder_cache_manager_cls": Named("the class of a cache manager", whole=True),
    "module_path": Named("the module of an offloading tier", whole=True),
    "cache_policy_module_path": Named("the module of a cache policy", whole=True),
    "inductor_passes": Named("functions that compilation calls"),
    "backend": Named(
        "the function that compiles", dotted=True, inside=frozenset({"compilation_config", "compilation"})
    ),
    "auto_map": Named("code that lies beside a checkpoint"),
}
"""Last part of an argument's name -> what it is."""


@dataclass(frozen=True, slots=True)
class Question:
    """Arguments without what names code.

    Attributes:
        arguments: What is left.
        left_out: Names of what was left out, as `argument` or `argument.field`, sorted.
    """

    arguments: dict[str, Any]
    left_out: tuple[str, ...]


def without(arguments: Mapping[str, Any]) -> Question:
    """Leave out what names code that is not the engine's own.

    Args:
        arguments: Keyword -> value; a keyword may be `section.field`.
    """
    found = [one for keyword, value in arguments.items() for one in _found(keyword, value, ())]
    gone = {path[0] for path, whole in found if whole or len(path) == 1}
    sections = {path[0].rpartition(".")[0] for path, whole in found if whole and "." in path[0]}
    kept: dict[str, Any] = {}
    for keyword, value in arguments.items():
        inner = [path[1:] for path, _ in found if path[0] == keyword]
        if keyword not in gone and keyword.rpartition(".")[0] not in sections:
            kept[keyword] = _pruned(value, inner) if inner else value
    return Question(kept, tuple(sorted({".".join(path) for path, _ in found})))


def _found(name: str, value: Any, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Paths of what names code, and whether all of the outermost argument goes with it."""
    path = (*above, name)
    section, _, last = name.rpartition(".")
    field = FIELDS.get(last.replace("-", "_"))
    if field is not None and field.inside and field.inside.isdisjoint({*above, section}):
        field = None
    if field is not None and _names_code(value, field):
        yield path, field.whole
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _found(str(key), item, path)
    elif isinstance(value, list | tuple) and any(True for item in value for _ in _found("", item, path)):
        yield path[:1], True  # nothing can be left out of a list alone


def _names_code(value: Any, field: Named) -> bool:
    match value:
        case str():
            named = value not in field.plain and (not field.dotted or "." in value or ":" in value)
            return bool(value) and named and not value.startswith(OWN)
        case Mapping():
            return any(_names_code(item, field) for item in value.values())
        case list() | tuple():
            return any(_names_code(item, field) for item in value)
    return False


def _pruned(value: Mapping[str, Any], paths: list[tuple[str, ...]]) -> dict[str, Any]:
    """A mapping without the values at the ends of paths."""
    gone = {path[0] for path in paths if len(path) == 1}
    inner: dict[str, list[tuple[str, ...]]] = {}
    for path in paths:
        inner.setdefault(path[0], []).append(path[1:])
    return {key: _pruned(item, inner[key]) if key in inner else item for key, item in value.items() if key not in gone}
