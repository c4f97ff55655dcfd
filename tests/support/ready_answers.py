"""Ready responses for tests: of the examples' models, and of any values that their types allow."""

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from staticfire.engine.config import accept
from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
from staticfire.engine.config.rules.examples import example_model
from staticfire.engine.ready.make import make_ready
from staticfire.engine.ready.response import TABLE, ReadyResponse
from staticfire.engine.worker.settle import settle_worker

ANY_OF: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(1, 2**63 - 1),
    float: st.floats(0, 1e9),
    str: st.text(max_size=20),
    bool: st.booleans(),
    NoneType: st.none(),
    UnsetType: st.just(UNSET),
}


def hint_of(name: str) -> Any:
    """The type of a field without its annotations."""
    return get_type_hints(ReadyResponse)[name]


def any_value(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type of `ReadyResponse`."""
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) in {Union, UnionType}:
        return st.one_of(*map(any_value, get_args(hint)))
    return ANY_OF[hint]


any_response = st.builds(
    ReadyResponse, engine_index=st.integers(0, 2**31), **{name: any_value(hint_of(name)) for name in TABLE}
)
"""A response with any value, or none, in every field."""


def resolved(model: str = "jamba-grow", **typed: Any) -> ResolvedConfig:
    """What the front end resolves for one of the examples' models."""
    return accept(typed, example_model(model))


def settled(model: str = "jamba-grow", **typed: Any) -> EngineConfig:
    """What a worker makes of it."""
    return settle_worker(resolved(model, **typed))


def answer(engine_index: int = 0, model: str = "jamba-grow", **typed: Any) -> ReadyResponse:
    """What an engine answers for it."""
    return make_ready(settled(model, **typed), engine_index=engine_index)
