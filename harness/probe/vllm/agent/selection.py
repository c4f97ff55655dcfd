"""Which attention backend the worker takes, and whether a refusal speaks of the configuration or of this machine.

The engine's own selection is asked. When it finds no backend, what it was told by each of them is looked at: the
configuration is refused if every backend has a reason that is about the configuration; a backend that could not be
loaded, or that only misses something here, may well be the one that takes it on the device.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .packages import Packages
from .reasons import field_of
from .refusal import NotKnownError, RefusedError

# Reasons of a backend that are about what is installed or built here. All others are about values or the device.
_HERE = re.compile(
    r"install|import|not (?:available|compiled|built|found)|could not be|unavailable|"
    r"requires? (?:flash ?infer|flash ?attention|fa\d)|flashinfer's|on (?:this|the current) device",
    re.IGNORECASE,
)


# What the backends' reasons begin with, and where the value lies.
_FIELDS = {
    "block_size": ("cache_config", "block_size"),
    "kv_cache_dtype": ("cache_config", "cache_dtype"),
    "dtype": ("model_config", "dtype"),
}
# Backends that cannot be loaded as this machine is. One that was loaded with what is presented stays loaded, and would
# be there for the next question.
_ABSENT: "dict[str, str]" = {}


class Tried:
    """What the backends said that the selection came to.

    Attributes:
        failed: Name -> why it cannot be loaded here.
        reasons: Name -> why it does not take the configuration.
    """

    def __init__(self, *, presented: bool) -> None:
        """Nothing was tried yet.

        Args:
            presented: Whether what the engine requires is presented.
        """
        self._presented = presented
        self.failed: dict[str, str] = {}
        self.reasons: dict[str, list[str]] = {}
        self._names: dict[Any, str] = {}

    def load(self, member: Any, real: Any) -> Any:
        """Load a backend's class, and turn whatever goes wrong into what the selection expects."""
        if not self._presented and member.name in _ABSENT:
            self.failed[member.name] = _ABSENT[member.name]
            raise ImportError(_ABSENT[member.name])
        try:
            found = real(member)
        except ValueError:
            raise  # a name without a class, which the engine refuses wherever it runs
        except Exception as error:
            self.failed[member.name] = f"{type(error).__name__}: {error}"
            if not self._presented:
                _ABSENT[member.name] = self.failed[member.name]
            raise ImportError(str(error)) from error
        self._names[found] = member.name
        return found

    def note(self, backend: Any, reasons: "list[str]") -> None:
        """Note why a class does not take the configuration."""
        self.reasons[self._names.get(backend, backend.__name__)] = list(reasons)

    def open(self) -> "list[str]":
        """Backends that may take the configuration on the device, each with what keeps it from doing so here."""
        told = [f"{name} ({why})" for name, why in self.failed.items()]
        for name, reasons in self.reasons.items():
            if all(_HERE.search(reason) for reason in reasons):
                told.append(f"{name} ({'; '.join(reasons)})")
        return told


def select(config: Any, packages: Packages, **layer: Any) -> "tuple[Any, bool]":
    """The backend that the engine picks for a layer.

    The engine is asked as it stands here. Where that gives no backend, it is asked again with what it requires and this
    machine lacks; only then does it refuse.

    Args:
        config: A `VllmConfig`.
        packages: What can be presented.
        layer: What differs from a plain decoder layer of the model, as the selection's keywords.

    Returns:
        The backend's class, and whether it takes the packages that are presented.

    Raises:
        RefusedError: None takes the configuration.
        NotKnownError: None takes it here, and one may on the device.
        Exception: Whatever else the engine raises.
    """
    here = Tried(presented=False)
    try:
        return _asked(config, here, layer), False
    except Exception:
        if not here.failed and not here.reasons:
            raise
    there = Tried(presented=True)
    with packages.presented():
        try:
            return _asked(config, there, layer), True
        except Exception as error:
            if doubtful := there.open():
                why = f"no attention backend takes it here, and may on the device: {', '.join(doubtful)[:400]}"
                raise NotKnownError(why) from error
            raise _refused(error, there, config) from error


def _refused(error: Exception, tried: Tried, config: Any) -> Exception:
    """A refusal, if the engine's exception follows from what the backends said."""
    decided = bool(tried.reasons) and isinstance(error, (ValueError, NotImplementedError))
    return RefusedError(error, values=_looked_at(tried, config)) if decided else error


def _looked_at(tried: Tried, config: Any) -> "list[dict[str, Any]]":
    """The values that every backend speaks against; where there is none, those that any does."""
    named = [
        {name for name in _FIELDS for reason in told if reason.startswith(name)} for told in tried.reasons.values()
    ]
    about = set.intersection(*named) or set.union(*named)
    found = (field_of(getattr(config, section), field) for name, (section, field) in _FIELDS.items() if name in about)
    return [one for one in found if one is not None]


def _asked(config: Any, tried: Tried, layer: "dict[str, Any]") -> Any:
    with _watched(tried):
        return _selected(config, layer)


def _selected(config: Any, layer: "dict[str, Any]") -> Any:
    choose = importlib.import_module("vllm.v1.attention.selector").get_attn_backend
    model, cache = config.model_config, config.cache_config
    known = {
        "head_size": model.get_head_size(),
        "dtype": model.dtype,
        "kv_cache_dtype": cache.cache_dtype,
        "block_size": cache.block_size,
        "use_mla": getattr(model, "use_mla", False),
        "num_heads": model.get_num_attention_heads(config.parallel_config),
        **layer,
    }
    wanted = inspect.signature(choose).parameters
    with importlib.import_module("vllm.config").set_current_vllm_config(config):
        return choose(**{name: value for name, value in known.items() if name in wanted})


@contextmanager
def _watched(tried: Tried) -> Iterator[None]:
    """Note what the engine's selection learns of each backend."""
    registry = importlib.import_module("vllm.v1.attention.backends.registry").AttentionBackendEnum
    base = importlib.import_module("vllm.v1.attention.backend").AttentionBackend
    load, check = registry.get_class, base.__dict__["validate_configuration"]

    def get_class(member: Any) -> Any:
        return tried.load(member, load)

    def validate(cls: Any, *arguments: Any, **keywords: Any) -> Any:
        reasons = check.__func__(cls, *arguments, **keywords)
        tried.note(cls, reasons)
        return reasons

    registry.get_class = get_class
    base.validate_configuration = classmethod(validate)
    try:
        yield
    finally:
        registry.get_class = load
        base.validate_configuration = check
