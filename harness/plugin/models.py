"""The registry of models that tests ask about: what an id stands for here, and which transformers it needs.

Reads `matrices/models/`. An id of a public tiny checkpoint stands for the tiny model of ours with the same kinds of
layers, and every run says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal

from staticfire.harness.errors import InputError, nearest
from staticfire.harness.models import catalog

STANDS_FOR: Final[Mapping[str, str]] = {
    "ai21labs/Jamba-tiny-random": "jamba-tiny",
    "ai21labs/Jamba-tiny-dev": "jamba-tiny",
    "ai21labs/Jamba-v0.1": "jamba-v0.1",
    "ai21labs/AI21-Jamba-Mini-1.5": "jamba-1.5-mini",
    "ibm-ai-platform/Bamba-9B-v1": "bamba-9b",
    "ibm-granite/granite-4.0-h-tiny": "granite-4.0-h-tiny",
    "nvidia/Nemotron-H-8B-Base-8K": "nemotron-h-8b",
    "Qwen/Qwen3-Next-80B-A3B-Instruct": "qwen3-next-80b-a3b",
    "meta-llama/Llama-3.1-8B": "llama-3.1-8b",
}
"""Hugging Face id -> name in `matrices/models/`."""

OnFail = Literal["error", "skip", "return"]
_announced: dict[str, str] = {}


class UnknownModelError(InputError, ValueError):
    """No model by that name; a `ValueError`, as suites written for vLLM expect."""


def local_name(model: str) -> str | None:
    """The name in `matrices/models/` that a model goes by here; None for a folder or an id that is none of ours."""
    if model in STANDS_FOR:
        return STANDS_FOR[model]
    return model if model in catalog.names() else None


def local_checkpoint(model: str) -> Path:
    """The folder of a model's checkpoint, made if it is a tiny model of ours.

    Raises:
        InputError: No such folder and no name or id of a tiny model; or a model that is only resolved, never run.
    """
    name = local_name(model)
    if name is None:
        if Path(model).is_dir():
            return Path(model)
        known = (*STANDS_FOR, *catalog.names())
        raise UnknownModelError(
            f"No model {model!r}: no folder, no name of ours and no id that stands for one.{nearest(model, known)} "
            f"Models: {', '.join(sorted(known))}."
        )
    from staticfire.harness.models.make import ensure  # noqa: PLC0415 -- makes checkpoints with torch

    return ensure(name)


def announce(model: str) -> None:
    """Note that an id was replaced, so that the run's summary says so."""
    name = STANDS_FOR.get(model)
    if name is not None:
        _announced[model] = name


def announced() -> dict[str, str]:
    """What was replaced in this process: id -> the local model."""
    return dict(_announced)


@dataclass(frozen=True, slots=True)
class HfModelInfo:
    """What tests ask about a model; the names are those of vLLM's registry.

    Attributes:
        default: The id or name asked about.
        local: Its name in `matrices/models/`.
        architecture: Class name in its configuration.
        min_transformers_version: First release whose implementation of the family is right; None for any.
        transformers_version_reason: What is wrong before it.
        trust_remote_code: Never needed: no code of a checkpoint is run.
        is_available_online: Whether it can be run here: tiny models are made, others only resolved.
        hf_overrides: None are needed.
    """

    default: str
    local: str
    architecture: str
    min_transformers_version: str | None
    transformers_version_reason: str | None
    is_available_online: bool
    trust_remote_code: bool = False
    dtype: str = "auto"
    tokenizer: str | None = None
    tokenizer_mode: str = "auto"
    max_model_len: int | None = None
    revision: str | None = None
    enforce_eager: bool = False
    hf_overrides: Mapping[str, Any] = field(default_factory=dict)

    def check_transformers_version(
        self,
        *,
        on_fail: OnFail,
        check_version_reason: str = "hf",  # noqa: ARG002 -- vLLM's signature; there is one reason here
        check_min_version: bool = True,
        check_max_version: bool = True,  # noqa: ARG002 -- the same; no release is too new
    ) -> str | None:
        """Compare the installed transformers with what the family needs.

        Args:
            on_fail: Raise, skip the test with a typed reason, or return what is wrong.
            check_version_reason: For the signature's sake.
            check_min_version: Whether the oldest good release counts.
            check_max_version: For the signature's sake.

        Returns:
            None where all is well; with `return`, what is wrong.

        Raises:
            RuntimeError: With `error`.
            ValueError: Another `on_fail`.
        """
        if on_fail not in ("error", "skip", "return"):
            raise ValueError(f"on_fail={on_fail!r}: must be error, skip or return")
        if self.min_transformers_version is None or not check_min_version:
            return None
        if _release(version("transformers")) >= _release(self.min_transformers_version):
            return None
        found = (
            f"transformers {version('transformers')} is here, {self.default} needs {self.min_transformers_version}: "
            f"{self.transformers_version_reason}"
        )
        return _fail(on_fail, "version", found)

    def check_available_online(self, *, on_fail: Literal["error", "skip"]) -> None:
        """Whether there is a checkpoint to run; nothing is downloaded, tiny models are made here.

        Raises:
            RuntimeError: With `error`.
        """
        if not self.is_available_online:
            _fail(on_fail, "package", f"{self.default} is only resolved here, never run: it has no tiny checkpoint")


class HfExampleModels:
    """The models by id, by local name and by architecture."""

    def find_hf_info(self, model_id: str) -> HfModelInfo:
        """What is known of a model.

        Raises:
            UnknownModelError: Nothing is, with the nearest name.
        """
        name = local_name(model_id)
        if name is None:
            known = (*STANDS_FOR, *catalog.names())
            raise UnknownModelError(f"No model {model_id!r} in the registry.{nearest(model_id, known)}")
        return _info(model_id, name)

    def get_hf_info(self, model_arch: str) -> HfModelInfo:
        """The first model of an architecture, a tiny one where there is one.

        Raises:
            UnknownModelError: No model has it, with the nearest name.
        """
        infos = [_info(name, name) for name in catalog.names()]
        found = [info for info in infos if info.architecture == model_arch]
        if not found:
            archs = {info.architecture for info in infos}
            raise UnknownModelError(f"No model of architecture {model_arch!r}.{nearest(model_arch, archs)}")
        return max(found, key=lambda info: info.is_available_online)

    def get_supported_archs(self) -> frozenset[str]:
        """Every architecture of the registry."""
        return frozenset(_info(name, name).architecture for name in catalog.names())


HF_EXAMPLE_MODELS: Final = HfExampleModels()


def is_quant_method_supported(quant_method: str) -> bool:
    """Whether the engine under test has a quantization, here. Imports neither engine for the reference one."""
    from staticfire.harness.plugin import runner  # noqa: PLC0415 -- imports this module

    if runner.under_test() == "vllm":
        from staticfire.harness.plugin.engines.vllm import supports_quantization  # noqa: PLC0415 -- brings vLLM

        return supports_quantization(quant_method)
    from staticfire.harness.probe.base import Accepted  # noqa: PLC0415 -- costs pydantic
    from staticfire.harness.probe.reference import ReferenceProbe  # noqa: PLC0415 -- the same

    return isinstance(ReferenceProbe().ask("jamba-tiny", {"quantization": quant_method}), Accepted)


@cache
def example_texts(count: int = 8, longest: int = 900) -> list[str]:
    """The first texts that fit into `longest` characters, which no tokenizer makes more tokens of."""
    from staticfire.harness.models import prompts  # noqa: PLC0415 -- only where it is used

    return [prompt.text for prompt in prompts.load() if 0 < len(prompt.text) <= longest][:count]


@cache
def _info(asked: str, name: str) -> HfModelInfo:
    from staticfire.harness.oracle.families import FAMILIES  # noqa: PLC0415 -- costs numpy

    model = catalog.load(name)
    family = FAMILIES.get(str(model.config["model_type"]))
    since = family.since if family is not None and family.since != "0" else None
    architectures = model.config.get("architectures") or [str(model.config["model_type"])]
    return HfModelInfo(
        default=asked,
        local=name,
        architecture=str(architectures[0]),
        min_transformers_version=since,
        transformers_version_reason=family.flaw if family is not None and since else None,
        is_available_online=model.tiny is not None,
    )


def _fail(on_fail: str, kind: Literal["package", "version"], message: str) -> str:
    if on_fail == "error":
        raise RuntimeError(message)
    if on_fail == "skip":
        from staticfire.harness.plugin.skips import TypedSkip  # noqa: PLC0415 -- costs pytest

        raise TypedSkip(kind, message)
    return message


def _release(text: str) -> tuple[int, ...]:
    import re  # noqa: PLC0415 -- the only use

    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in match.group().split(".")) if match else ()
