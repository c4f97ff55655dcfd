"""Whether a request can ever be served by this engine. Imports no torch."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from staticfire.engine.cache.layout import plan_cache
from staticfire.engine.cache.manager import CacheManager
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.errors import RequestError
from staticfire.engine.exchange import NewRequest
from staticfire.engine.request import Request


def most_computed_tokens(request: Request, max_model_len: int) -> int:
    """Return how many tokens the request has computed at most: the last one it samples is never computed."""
    params = request.sampling_params
    outputs = params.max_tokens if params.forced_token_ids is None else len(params.forced_token_ids)
    return min(request.num_prompt_tokens + outputs, max_model_len) - 1


def check_request(request: Request, config: EngineConfig, cache: CacheManager) -> None:
    """Refuse a request that could never finish.

    Raises:
        RequestError: With every reason, in numbers.
    """
    _check(request, config, cache, cache.pool.num_usable)


class Gate:
    """The same for those who have an engine's configuration, but not its cache: the front end.

    With what an engine did not report no cache can be planned. Tokens and lengths are checked all the same; whether
    there is room for a request is then left to the engine.

    Args:
        config: As settled by the engine.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        try:
            # Of the cache only the arithmetic is used, so it needs no more blocks than one.
            self._cache: CacheManager | None = CacheManager(config, replace(plan_cache(config), num_blocks=2))
        except ValueError:
            self._cache = None

    def check(self, request: Request) -> None:
        """Refuse a request that could never finish.

        Raises:
            RequestError: With every reason, in numbers.
        """
        _check(request, self._config, self._cache, self._config.runtime.num_gpu_blocks - 1)


def admit(
    requests: Sequence[NewRequest], taken: Collection[str], check: Callable[[Request], None], first_arrival: int
) -> list[Request]:
    """Make requests of what the user wants, all or none.

    Args:
        requests: What is wanted.
        taken: Ids of unfinished requests.
        check: Raises what is wrong with one of them.
        first_arrival: Sequence number of the first.

    Raises:
        RequestError: Any of them is refused; all reasons at once.
    """
    admitted, faults, used = [], [], set(taken)
    for arrival, new in enumerate(requests, first_arrival):
        request = Request(new.request_id, list(new.prompt_token_ids), new.sampling_params, arrival)
        admitted.append(request)
        if new.request_id in used:
            faults.append(f"request {new.request_id!r}: the id is in use by an unfinished request")
        used.add(new.request_id)
        try:
            check(request)
        except RequestError as error:
            faults.append(str(error))
    if faults:
        raise RequestError("\n".join(faults))
    return admitted


def _check(request: Request, config: EngineConfig, cache: CacheManager | None, usable: int) -> None:
    faults = [*_token_faults(request, config), *_length_faults(request, config)]
    if not faults and cache is not None:
        faults = _room_faults(request, config, cache, usable)
    if faults:
        raise RequestError(f"request {request.request_id!r}: " + "; ".join(faults))


def _token_faults(request: Request, config: EngineConfig) -> list[str]:
    vocab = config.model.info.vocab_size
    forced = request.sampling_params.forced_token_ids or ()
    faults = []
    for name, tokens in (("prompt", request.prompt_token_ids), ("forced_token_ids", forced)):
        if tokens and (min(tokens) < 0 or max(tokens) >= vocab):
            index, token = next((i, token) for i, token in enumerate(tokens) if not 0 <= token < vocab)
            faults.append(f"{name}: token {token} at index {index} is not in [0, {vocab})")
    return faults


def _length_faults(request: Request, config: EngineConfig) -> list[str]:
    prompt, limit = request.num_prompt_tokens, config.scheduler.max_model_len
    forced = len(request.sampling_params.forced_token_ids or ())
    if not prompt:
        return ["the prompt is empty: give at least one token"]
    if prompt >= limit:
        return [
            f"the prompt has {prompt} tokens; max_model_len={limit} leaves room for at most {limit - 1} and one new"
        ]
    if prompt + forced > limit:
        return [f"{prompt} prompt and {forced} forced tokens are more than max_model_len={limit}"]
    budget = config.scheduler.max_num_batched_tokens
    if not config.scheduler.enable_chunked_prefill and prompt > budget:
        return [f"the prompt has {prompt} tokens, max_num_batched_tokens={budget}, and chunked prefill is off"]
    return []


def _room_faults(request: Request, config: EngineConfig, cache: CacheManager, usable: int) -> list[str]:
    tokens = most_computed_tokens(request, config.scheduler.max_model_len)
    needed = cache.max_blocks(tokens)
    if needed <= usable:
        return []
    return [
        (
            f"it needs {needed} cache blocks to compute {tokens} tokens and the pool has {usable}: raise "
            f"num_gpu_blocks_override to at least {needed + 1} (one is the null block) or lower max_tokens"
        )
    ]
