"""Command-line words as engine keywords."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from staticfire.harness.scan.base import Location, Unknown
from staticfire.harness.scan.values import Joined, Rest, Text

SHORT = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "dpn": "data_parallel_rank",
    "dpr": "data_parallel_start_rank",
    "dpl": "data_parallel_size_local",
    "dpa": "data_parallel_address",
    "dpp": "data_parallel_rpc_port",
    "dpb": "data_parallel_backend",
    "dph": "data_parallel_hybrid_lb",
    "dpe": "data_parallel_external_lb",
    "dcp": "decode_context_parallel_size",
    "pcp": "prefill_context_parallel_size",
    "ep": "enable_expert_parallel",
    "q": "quantization",
    "n": "nnodes",
    "r": "node_rank",
    "cc": "compilation_config",
    "ac": "attention_config",
    "sc": "speculative_config",
    "asc": "additional_config",
    "O": "optimization_level",
    "p": "port",
}
"""Short option -> keyword."""

FRONT_END = frozenset({
    "host", "port", "uds", "uvicorn_log_level", "disable_uvicorn_access_log", "allow_credentials",
    "allowed_origins", "allowed_methods", "allowed_headers", "api_key", "lora_modules", "chat_template",
    "chat_template_content_format", "response_role", "ssl_keyfile", "ssl_certfile", "ssl_ca_certs",
    "enable_ssl_refresh", "ssl_cert_reqs", "root_path", "middleware", "return_tokens_as_token_ids",
    "disable_frontend_multiprocessing", "enable_request_id_headers", "enable_auto_tool_choice",
    "exclude_tools_when_tool_choice_none", "tool_call_parser", "tool_parser_plugin", "log_config_file",
    "max_log_len", "disable_fastapi_docs", "enable_prompt_tokens_details", "enable_server_load_tracking",
    "enable_force_include_usage", "enable_tokenizer_info_endpoint", "h11_max_incomplete_event_size",
    "h11_max_header_count", "headless", "api_server_count", "config", "enable_log_outputs", "enable_log_requests",
    "disable_log_requests", "trust_request_chat_template", "default_chat_template_kwargs", "ssl_ciphers",
    "tokens_only", "tool_server", "disable_access_log_for_endpoints", "enable_offline_docs", "shutdown_timeout",
    "grpc", "enable_flash_late_interaction", "enable_per_request_metrics", "allowed_local_endpoints",
})  # fmt: skip
"""Flags of a server that its front end takes; the engine never sees them."""

BENCHMARK = frozenset({
    "input_len", "output_len", "num_prompts", "dataset_name", "dataset_path", "output_json", "num_iters",
    "batch_size", "num_iters_warmup", "n", "profile", "async_engine", "backend", "use_beam_search", "prefix_len",
    "hf_max_batch_size", "disable_detokenize", "disable_frontend_multiprocessing", "random_range_ratio",
    "lora_path", "num_runs",
})  # fmt: skip

BOOLEAN_DISABLE = frozenset({
    "disable_log_stats", "disable_custom_all_reduce", "disable_sliding_window", "disable_cascade_attn",
    "disable_hybrid_kv_cache_manager", "disable_mm_preprocessor_cache", "disable_nccl_for_dp_synchronization",
    "disable_chunked_mm_input", "disable_any_whitespace", "disable_async_output_proc", "disable_fallback",
    "disable_additional_properties", "disable_padded_drafter_batch", "disable_log_requests",
    "disable_uvicorn_access_log", "disable_frontend_multiprocessing", "disable_fastapi_docs",
    "disable_access_log_for_endpoints", "disable_bypass_prefix_cache", "disable_detokenize", "disable_logprobs",
})  # fmt: skip
"""`--disable-x` flags that are keywords of their own; any other `--disable-x` is `enable_x` turned off."""

BOOLEAN = frozenset({
    "trust_remote_code", "enforce_eager", "skip_tokenizer_init", "enable_prompt_embeds",
    "allow_deprecated_quantization", "enable_sleep_mode", "async_scheduling", "use_tqdm_on_load",
    "ray_workers_use_nsight", "calculate_kv_scales", "kv_sharing_fast_prefill", "fully_sharded_loras",
    "fully_sharded_lora", "specialize_active_lora", "headless", "interleave_mm_strings", "skip_mm_profiling",
    "language_model_only", "scheduler_reserve_full_isl", "cpu_offload", "allow_credentials",
    "return_tokens_as_token_ids", "kv_cache_metrics", "show_hidden_metrics", "model_impl_strict",
    "data_parallel_hybrid_lb", "data_parallel_external_lb", "data_parallel_multi_port_external_lb",
    "lora_default_mm", "mm_tensor_ipc", "profile", "async_engine", "use_beam_search", "tokens_only", "grpc",
})  # fmt: skip
"""Flags that take no value and do not say so by their names (`enable_…`, `disable_…`, `no_…` do)."""

MULTIPLE = frozenset({
    "served_model_name", "lora_modules", "cudagraph_capture_sizes", "cuda_graph_sizes", "api_key", "middleware",
    "logits_processors", "disable_access_log_for_endpoints", "ignore_patterns", "collect_detailed_traces",
    "show_hidden_metrics_for_version", "compile_sizes", "prompt_adapters", "offload_params", "cpu_offload_params",
    "allowed_media_domains", "numa_bind_nodes", "numa_bind_cpus", "assigned_physical_gpu_ids", "lora_target_modules",
})  # fmt: skip
"""Flags that take several words."""

PLACEHOLDER = re.compile(
    r"<[A-Za-z_][\w .:/-]{0,60}>|\$?\{\{.{0,200}\}\}|\.{3}|…|\[(?:\.{3}|…|[A-Za-z][\w .:/|-]{0,60})\]"
    r"|(?:YOUR|REPLACE|INSERT|CHANGE)[_-][\w-]{1,60}|<<?[\w-]{1,60}>?>"
)
"""What documentation puts where a reader is to put something of his own: `<N>`, `...`, `{{ model }}`, `YOUR_MODEL`."""
_LETTER = re.compile(r"[A-Z]|X{2,9}")
_COUNTED = re.compile(
    r"(?:^|_)(?:num|max|size|len|seed|port|bytes|tokens|seqs|count|rank|utilization|concurrency)(?:_|$)|^[tdp]p$"
)
"""Keywords whose value is a number, so that a letter in its place stands for one."""
_DASHES = re.compile(r"^-{1,2}[A-Za-z]")
_NUMBER = re.compile(r"^[+-]?(?:\d+|\d+\.\d*|\.\d+|\d+(?:\.\d*)?[eE][+-]?\d+)$")


@dataclass(slots=True)
class Flags:
    """What a command line says.

    Attributes:
        keywords: Keyword -> value.
        where: Keyword -> place of its flag, where that is known.
        spans: Keyword -> the words that say it, as pairs of first index and index after the last.
        positions: Index of each positional word.
        positional: Words that belong to no flag.
        missing: Why there may be further keywords, empty if there are none.
    """

    keywords: dict[str, Any] = field(default_factory=dict)
    where: dict[str, Location] = field(default_factory=dict)
    spans: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    positions: list[int] = field(default_factory=list)
    positional: list[Any] = field(default_factory=list)
    missing: str = ""


def parse(words: Sequence[Any]) -> Flags:
    """Read command-line words.

    Args:
        words: Strings, with `Unknown`, `Joined` and `Rest` where something is not known.
    """
    flags = Flags()
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if isinstance(word, Rest):
            flags.missing = flags.missing or word.why.reason
        elif isinstance(word, str) and PLACEHOLDER.fullmatch(word):
            flags.missing = flags.missing or "placeholder"
            if not flags.positional and not word.startswith((".", "…", "[")):
                flags.positions.append(index - 1)
                flags.positional.append(Unknown("placeholder", str(word)))
        elif isinstance(word, Unknown) and word.reason == "placeholder" and flags.positional:
            flags.missing = flags.missing or word.reason
        elif isinstance(word, Joined) and isinstance(word.pieces[0], str) and _DASHES.match(word.pieces[0]):
            _partly_known(flags, word)
        elif isinstance(word, str) and _DASHES.match(word):
            first = index - 1
            index = _flag(flags, word, words, index)
            flags.spans.setdefault(_named(word), []).append((first, index))
        else:
            flags.positions.append(index - 1)
            flags.positional.append(word)
    return flags


def _named(flag: str) -> str:
    """The keyword that a flag's own spelling names, whatever its value."""
    if found := re.fullmatch(r"(-O|-tp|-pp|-dp)\d+", flag):
        flag = found[1]
    base = flag.partition("=")[0].partition(".")[0]
    return keyword_of(base, value=True)[0]


def _partly_known(flags: Flags, word: Joined) -> None:
    name, equals, rest = word.pieces[0].partition("=")
    why = next((piece for piece in word.pieces if isinstance(piece, Unknown)), Unknown("value"))
    if not equals:
        flags.missing = flags.missing or why.reason
        return
    del rest
    _set(flags, name, Unknown(why.reason, why.detail), None)


def _flag(flags: Flags, word: str, words: Sequence[Any], index: int) -> int:
    where = word.where if isinstance(word, Text) else None
    name, equals, inline = word.partition("=")
    if equals:
        _set(flags, name, value_of(inline), where)
        return index
    if re.fullmatch(r"-O\d", name):
        _set(flags, "-O", int(name[2]), where)
        return index
    if re.fullmatch(r"-(?:tp|pp|dp)\d+", name):
        _set(flags, name[:3], int(name[3:]), where)
        return index
    values: list[Any] = []
    several = name.lstrip("-").replace("-", "_") in MULTIPLE
    while index < len(words) and not _starts_flag(words[index]) and not _takes_none(name):
        if values and not several:
            break
        value = words[index]
        if isinstance(value, Rest):
            if not values:
                # Whatever stands there, the first word of it is the value, if there is one.
                flags.missing = flags.missing or value.why.reason
                values.append(value.why)
            break
        values.append(value)
        index += 1
    plain = [_value(value) for value in values]
    _set(flags, name, True if not plain else plain[0] if len(plain) == 1 else plain, where)
    return index


def _starts_flag(word: Any) -> bool:
    if isinstance(word, Joined):
        return isinstance(word.pieces[0], str) and bool(_DASHES.match(word.pieces[0]))
    return isinstance(word, str) and bool(_DASHES.match(word))


def _takes_none(flag: str) -> bool:
    name = flag.lstrip("-").replace("-", "_")
    if name == "ep" or name in BOOLEAN or name in BOOLEAN_DISABLE:
        return True
    return name.startswith(("no_", "enable_", "disable_")) and name != "disable_access_log_for_endpoints"


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return value_of(value)
    if isinstance(value, Joined):
        why = next((piece for piece in value.pieces if isinstance(piece, Unknown)), Unknown("value"))
        return Unknown(why.reason, why.detail)
    if isinstance(value, Unknown) and value.candidates:
        candidates = tuple(value_of(one) if isinstance(one, str) else one for one in value.candidates)
        return Unknown(value.reason, value.detail, candidates)
    return value


def value_of(text: str) -> Any:
    """A word as the value that its spelling says: a number, JSON, or the string itself."""
    text = str(text)
    if PLACEHOLDER.fullmatch(text):
        return Unknown("placeholder", text)
    if _NUMBER.match(text) and len(text) < 40:
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    if text[:1] in {"{", "["}:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    if text in {"true", "True", "false", "False"}:
        return text in {"true", "True"}
    return text


def keyword_of(flag: str, value: Any) -> tuple[str, Any]:
    """The keyword and value that a flag means: `--no-enable-x` is `enable_x` false."""
    single = not flag.startswith("--")
    name = flag.lstrip("-").replace("-", "_")
    if single:
        return SHORT.get(name, name), value
    if value is True or isinstance(value, bool):
        if name.startswith("no_"):
            return name[3:], not value
        if name.startswith("disable_") and name not in BOOLEAN_DISABLE:
            return f"enable_{name[8:]}", not value
    return name, value


def _set(flags: Flags, flag: str, value: Any, where: Location | None) -> None:
    base, dot, path = flag.partition(".")
    name, value = keyword_of(base, value)
    if isinstance(value, str) and _LETTER.fullmatch(value) and _COUNTED.search(name):
        value = Unknown("placeholder", value)
    if dot:
        parts = path.split(".")
        current = flags.keywords.get(name)
        inner = dict(current) if isinstance(current, dict) else {}
        _nest(inner, [part.replace("-", "_") for part in parts], value)
        value = inner
    elif isinstance(value, dict) and isinstance(flags.keywords.get(name), dict):
        value = {**flags.keywords[name], **value}
    flags.keywords[name] = value
    if where is not None:
        flags.where.setdefault(name, where)


def _nest(inner: dict[str, Any], parts: list[str], value: Any) -> None:
    key = parts[0]
    if len(parts) > 1:
        below = inner.get(key)
        inner[key] = below = dict(below) if isinstance(below, dict) else {}
        _nest(below, parts[1:], value)
    elif key.endswith("+"):
        have = inner.get(key[:-1])
        more = value.split(",") if isinstance(value, str) else [value]
        inner[key[:-1]] = [*(have if isinstance(have, list) else []), *more]
    else:
        inner[key] = value
