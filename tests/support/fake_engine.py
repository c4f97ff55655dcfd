"""An engine with a few rules of its own, and scans made by hand: what the tests of `check` share."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from staticfire.harness.check.negative import Template
from staticfire.harness.check.question import Answer, Question, UnknownModel
from staticfire.harness.probe.base import Accepted, Crashed, Note, Rejected, Settled
from staticfire.harness.scan.base import Configuration, Constant, Location, Scan, Site, Typed

CHUNKED = "Chunked prefill is required for mamba cache mode 'align'."
ORIGIN = "vllm/config/vllm.py:1187"
KNOWN = {
    "enable_chunked_prefill": True,
    "enable_prefix_caching": True,
    "mamba_cache_mode": None,
    "max_model_len": None,
    "max_num_batched_tokens": 2048,
    "max_num_seqs": 128,
    "block_size": None,
    "quantization": None,
    "dtype": "auto",
    "seed": 0,
    "disable_sliding_window": False,
    "tensor_parallel_size": 1,
}


@dataclass
class FakeEngine:
    """Knows `org/hybrid`, `org/dense` and `org/sizeless`; model `org/crash` makes it fail, `org/slow` is unknown.

    Rules: a hybrid with prefix caching needs chunked prefill; at most 4096 batched tokens; quantization `none` with
    dtype `fp8` clash; two keywords it does not know are refused by name. Hybrids get blocks of 1056 tokens.
    """

    title: str = "fake 1.0"
    device: str = "h100-80gb"
    asked: list[Question] = field(default_factory=list)
    closed: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Constant] = field(default_factory=dict)

    def ask(self, questions: list[Question]) -> list[Answer]:
        self.asked += questions
        return [self.answer(question.model, question.arguments) for question in questions]

    def answer(self, model: str, arguments: Mapping[str, Any]) -> Answer:
        if model == "org/crash":
            return Crashed("ImportError: no torchvision")
        if model not in {"org/hybrid", "org/dense", "org/sizeless"}:
            return UnknownModel(model)
        if unknown := sorted(set(arguments) - set(KNOWN)):
            message = f"EngineArgs.__init__() got an unexpected keyword argument '{unknown[0]}'"
            return Rejected("field", message, "vllm/engine/arg_utils.py:100")
        values: dict[str, Any] = {
            name: default if arguments.get(name) is None else arguments[name] for name, default in KNOWN.items()
        }
        hybrid = model != "org/dense"
        if hybrid and values["enable_prefix_caching"] and not values["enable_chunked_prefill"]:
            return Rejected("rule", f"1 validation error for VllmConfig\n  Assertion failed, {CHUNKED}", ORIGIN)
        if values["max_num_batched_tokens"] > 4096:
            message = f"max_num_batched_tokens ({values['max_num_batched_tokens']}) must be at most 4096 for {model}"
            return Rejected("rule", message, "vllm/config/scheduler.py:200")
        if values["quantization"] == "fp8" and values["dtype"] == "float32" and values["seed"]:
            return Rejected("rule", "fp8 with float32 takes no seed", "vllm/config/model.py:5")
        notes = []
        if values["disable_sliding_window"]:
            notes.append(Note("disable_sliding_window is deprecated and will be removed in v0.40.", "x"))
        resolved = {f"cache.{name}": value for name, value in values.items()}
        if values["mamba_cache_mode"] == "all" and not values["enable_prefix_caching"]:
            resolved["cache.mamba_cache_mode"] = "none"
        runtime = {"cache.block_size": 1056 if hybrid else values["block_size"] or 16}
        return Accepted(resolved, runtime, tuple(notes), Settled({"blocks_at_most": 1000}))

    def chain(self, question: Question) -> tuple[str, ...]:
        return ("mamba_cache_mode=align: derived",) if "hybrid" in question.model else ()

    def withheld(self, question: Question) -> Mapping[str, str]:
        return {name: "it is not the engine's" for name in question.environment if not name.startswith("FAKE_")}

    def doubt(self, question: Question) -> str:
        return "the sizes of the model are not its own" if question.model == "org/sizeless" else ""

    def keywords(self, question: Question) -> frozenset[str]:
        return frozenset(KNOWN)

    def messages(self) -> tuple[Template, ...]:
        return (
            Template("AssertionError", CHUNKED),
            Template("ValueError", "max_num_batched_tokens ({}) must be at most {} for {}"),
        )

    def close(self) -> None:
        self.closed = True


def typed(value: Any, layer: Any = "call", line: int = 1, path: str = "tests/test_a.py") -> Typed:
    return Typed(value, Location(path, line, 5), layer)


def configuration(
    model: Any = "org/hybrid", *, defaults: Mapping[str, Any] | None = None, **call: Any
) -> Configuration:
    """`defaults` are a wrapper's, the others are typed at the site; names of `Configuration` go to it."""
    own = {name: call.pop(name) for name in list(call) if name in Configuration.__dataclass_fields__}
    keywords = {name: typed(value, "wrapper") for name, value in (defaults or {}).items() if name not in call}
    keywords |= {name: typed(value) for name, value in call.items()}
    return Configuration(model, keywords, **own)


def site(
    *configurations: Configuration, line: int = 10, path: str = "tests/test_a.py", form: Any = "vllm_runner", **own: Any
) -> Site:
    return Site(Location(path, line, 10, line, 40), form, own.pop("function", "test_it"), tuple(configurations), **own)


def scan(*sites: Site) -> Scan:
    return Scan(tuple(sites), {"python": 1})


def parametrized(base: Configuration, **params: Mapping[str, Any]) -> tuple[Configuration, ...]:
    """One configuration for each id; a mapping of keywords, or `model`."""
    made = []
    for name, change in params.items():
        keywords = {**base.keywords, **{key: typed(value) for key, value in change.items() if key != "model"}}
        made.append(replace(base, params=name, keywords=keywords, model=change.get("model", base.model)))
    return tuple(made)
