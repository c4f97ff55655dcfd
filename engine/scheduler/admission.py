"""Whether a request can ever be served by this engine. Imports no torch."""

from staticfire.engine.cache.manager import CacheManager
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.errors import RequestError
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
    faults = [*_token_faults(request, config), *_length_faults(request, config)]
    if not faults:
        faults = _room_faults(request, config, cache)
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


def _room_faults(request: Request, config: EngineConfig, cache: CacheManager) -> list[str]:
    tokens = most_computed_tokens(request, config.scheduler.max_model_len)
    needed, usable = cache.max_blocks(tokens), cache.pool.num_usable
    if needed <= usable:
        return []
    return [
        (
            f"it needs {needed} cache blocks to compute {tokens} tokens and the pool has {usable}: raise "
            f"num_gpu_blocks_override to at least {needed + 1} (one is the null block) or lower max_tokens"
        )
    ]
