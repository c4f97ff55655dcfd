"""Stage two, Resolved: from what was typed to every value with its provenance, judged by every rule."""

from collections.abc import Mapping
from typing import Any, cast

from staticfire.engine.config.arithmetic import arithmetic_lines
from staticfire.engine.config.chain import chain
from staticfire.engine.config.device import CPU, Device
from staticfire.engine.config.draft import Draft
from staticfire.engine.config.engine_config import (
    CacheConfig,
    Dtype,
    KernelConfig,
    LoadConfig,
    ModelConfig,
    ParallelConfig,
    QuantizationConfig,
    ResolvedConfig,
    SchedulerConfig,
)
from staticfire.engine.config.errors import ConfigError, Fault
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.notes import notes
from staticfire.engine.config.release import REFERENCE, EngineRelease
from staticfire.engine.config.resolution import Resolution, Violation
from staticfire.engine.config.rules.registry import REWRITES, RULES
from staticfire.engine.config.settle_cache import settle_cache
from staticfire.engine.config.settle_model import settle_model, settle_parallel, settle_weights
from staticfire.engine.config.settle_runtime import runtime, settle_runtime
from staticfire.engine.config.settle_scheduler import settle_scheduler
from staticfire.engine.config.typed import read_typed
from staticfire.engine.config.unknown import PAGES, only_weights, runtime_unknown


def resolve(
    typed: Mapping[str, Any], model: ModelInfo, device: Device = CPU, release: EngineRelease = REFERENCE
) -> Resolution:
    """Resolve a configuration and judge it.

    Args:
        typed: What the user wrote, by vLLM's keyword names; unset keywords are left out (or None).
        model: The model.
        device: The device it is meant for.
        release: The engine that it is judged for; by default the one of this package, which alone can run it.

    Returns:
        Every value with its provenance, the run-time values, every broken rule, every silent replacement, and the
        frozen configuration where no rule is broken.

    Raises:
        ConfigError: A keyword is unknown or has a value of the wrong kind; the message has the broken rules of the
            remaining keywords as well.
    """
    sound, others, faults = read_typed(typed)
    resolution = judge(settle(Draft(sound, others, model, device, release)))
    if faults:
        raise ConfigError([*faults, *rule_faults(resolution)])
    return resolution


def rule_faults(resolution: Resolution) -> list[Fault]:
    """Broken rules as entries of a `ConfigError`; the `type` is the rule's name."""
    return [Fault(v.name, v.fields[0], v.message, code=v.code, chain=v.chain) for v in resolution.violations]


def settle(draft: Draft) -> Draft:
    """Settle every value, each section after those it follows from."""
    settle_model(draft)
    settle_parallel(draft)
    settle_weights(draft)
    settle_scheduler(draft)
    settle_cache(draft)
    settle_runtime(draft)
    return draft


def judge(draft: Draft) -> Resolution:
    """Ask every rule about a settled draft."""
    violations, limits, defined = _violations(draft)
    silent = any(rule.silences for rule in RULES if rule.code in {limit.code for limit in limits})
    late = runtime(draft) if defined else None
    return Resolution(
        values=draft.values,
        runtime=late,
        violations=() if silent else violations,
        rewrites=() if silent else tuple(rewrite for rule in REWRITES for rewrite in rule.rewrites(draft)),
        config=None if violations or limits else _config(draft),
        arithmetic=arithmetic_lines(draft) if defined else (),
        notes=tuple(notes(draft)) if defined else (),
        unknown=draft.unknown,
        limits=limits,
    )


def _violations(draft: Draft) -> tuple[tuple[Violation, ...], tuple[Violation, ...], bool]:
    """Ask every rule: what refuses, what leaves an imitated engine open, and whether run-time values mean anything."""
    refusals: list[Violation] = []
    limits: list[Violation] = []
    defined = PAGES not in draft.unknown
    late = runtime_unknown(draft.unknown)
    for rule in RULES:
        if rule.reads_runtime and not (defined and (not late or (rule.reads_bounds and only_weights(draft)))):
            continue
        if not rule.holds(draft.release):
            continue
        broken = rule.check(draft)
        if not broken:
            continue
        defined &= not rule.breaks_runtime
        open_ = rule.limit and draft.release is not REFERENCE
        found = limits if open_ else refusals
        if isinstance(broken, str):
            links = chain(draft.values, rule.fields)
            found.append(Violation(rule.code, rule.name, broken, rule.fields, links))
        else:
            found += [Violation(rule.code, rule.name, one.message, (one.field,), one.chain) for one in broken]
    return tuple(refusals), tuple(limits), defined


def _config(draft: Draft) -> ResolvedConfig:
    """Freeze; the rules have narrowed the types."""
    return ResolvedConfig(
        model=ModelConfig(
            draft.model.name,
            draft.model,
            cast("Dtype", draft.dtype),
            draft.max_model_len,
            draft.seed,
            draft.fit_max_model_len,
        ),
        cache=CacheConfig(
            draft.block_size,
            draft.enable_prefix_caching,
            draft.mamba_cache_mode,
            draft.mamba_block_size,
            draft.kv_cache_dtype,
            draft.mamba_cache_dtype,
            draft.mamba_ssm_cache_dtype,
            draft.num_gpu_blocks_override,
            draft.kv_cache_memory_bytes,
        ),
        scheduler=SchedulerConfig(
            draft.max_num_batched_tokens,
            draft.max_num_seqs,
            draft.max_model_len,
            draft.enable_chunked_prefill,
            draft.long_prefill_token_threshold,
            cast("Any", draft.scheduling_policy),
        ),
        parallel=ParallelConfig(
            draft.tensor_parallel_size,
            draft.pipeline_parallel_size,
            draft.data_parallel_size,
            draft.enable_multiprocessing,
            draft.data_parallel_rank,
            draft.data_parallel_external_lb,
            draft.data_parallel_address,
            draft.data_parallel_rpc_port,
        ),
        quantization=QuantizationConfig(cast("Any", draft.quantization)),
        load=LoadConfig(cast("Any", draft.load_format)),
        kernel=KernelConfig(cast("Any", draft.kernel_backend)),
        device=draft.device,
    )
