"""What the engine is compared with: oracle answers and the group's canonical cell, each computed once and stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import staticfire.engine
import staticfire.kernels
from staticfire.harness.oracle.base import Array, Noise, Oracle, Question, Replay, Tokens, Trace
from staticfire.harness.oracle.compare import Expected
from staticfire.harness.oracle.store import Answer as Stored
from staticfire.harness.oracle.store import Store, checkpoint_digest, code_digest, digest
from staticfire.harness.oracle.subject import Answer, Subject

SAME_IN_GROUP = (
    "dtype",
    "quantization",
    "mamba_cache_dtype",
    "mamba_ssm_cache_dtype",
    "kv_cache_dtype",
    "seed",
    "load_format",
)
"""Keywords that change what is computed; all others must not."""

PLAIN: Mapping[str, Any] = {
    "enable_prefix_caching": False,
    "enable_chunked_prefill": True,
    "max_num_batched_tokens": 8192,
    "block_size": 16,
}
"""The canonical cell: no cache hits, no prompt split, small blocks."""


class OracleReferences:
    """An oracle's answers to one question, through the store.

    Args:
        oracle: Who is asked, where the store has no answer.
        store: Where answers are kept.
        question: The question.
    """

    def __init__(self, oracle: Oracle, store: Store, question: Question) -> None:
        self._oracle, self._store, self._question = oracle, store, question
        key = digest(
            oracle.version,
            checkpoint_digest(question.checkpoint),
            question.dtype,
            question.quantization,
            question.max_tokens,
            question.ssm_dtype,
            question.conv_dtype,
            question.kv_dtype,
        )
        self._group = f"{oracle.name}-{question.checkpoint.name}-{key}"
        store.use(self._group)

    def traces(self, prompts: Sequence[Tokens]) -> list[Trace]:
        """Answers for prompts, in order.

        Raises:
            OracleError: The oracle cannot be trusted with this question.
        """
        keys = [digest("trace", prompt) for prompt in prompts]
        if any(self._store.get(self._group, key) is None for key in keys):
            with self._store.lock(self._group):
                for key, prompt in zip(keys, prompts, strict=True):
                    if self._store.get(self._group, key) is None:
                        self._store.put(self._group, key, *_pack(self._oracle.trace(self._question, prompt)))
        return [_unpack(_present(self._store.get(self._group, key))) for key in keys]

    def replay(self, trace: Trace, routing: Array) -> Replay:
        """Values for a trace's tokens under another routing [L, T, k]."""
        key = digest("replay", trace.prompt, routing.tolist())
        found = self._store.get(self._group, key)
        if found is None:
            made = self._oracle.replay(self._question, trace.prompt, trace.tokens, routing)
            self._store.put(self._group, key, {}, {"rows": made.rows, "router_logits": made.router_logits})
            return made
        return Replay(found[1]["rows"], found[1]["router_logits"])

    def score(self, tokens: Tokens, last: int, routing: Array) -> Array:
        """Log-probabilities [last, V] of what follows each of the last of some tokens.

        Args:
            tokens: All tokens fed.
            last: How many of them are asked about.
            routing: Experts [L, T, k] that an engine used; where it is not known, the oracle's own are.
        """
        known = routing if routing.size and bool((routing >= 0).all()) else None
        key = digest("score", tokens, last, None if known is None else known.tolist())
        found = self._store.get(self._group, key)
        if found is None:
            rows = self._oracle.score(self._question, tokens, last, known)
            self._store.put(self._group, key, {}, {"rows": rows})
            return rows
        return found[1]["rows"]


class CanonicalError(Exception):
    """The canonical cell did not do what makes it canonical; no cell of its group can be compared with it."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """What the canonical cell computed for one prompt.

    Attributes:
        expected: Its tokens and its log-probabilities [n, V] over the oracle's continuation.
        routing: Its experts [L, T, k].
    """

    expected: Expected
    routing: Array


class CanonicalReferences:
    """The canonical cell of a group, computed once for each prompt by the engine as it is now.

    Args:
        store: Where answers are kept.
        checkpoint: Folder of the checkpoint.
        config: The engine keywords of any cell of the group.
        max_tokens: Tokens to generate.
    """

    def __init__(self, store: Store, checkpoint: Path, config: Mapping[str, Any], max_tokens: int) -> None:
        self._store, self._checkpoint, self._max_tokens = store, checkpoint, max_tokens
        self._config = canonical_config(config)
        key = digest(engine_digest(), checkpoint_digest(checkpoint), self._config, max_tokens)
        self._group = f"canonical-{checkpoint.name}-{key}"
        store.use(self._group)

    def answers(self, traces: Sequence[Trace]) -> list[Canonical]:
        """Answers for the prompts of some traces, teacher-forced on the traces' tokens.

        Raises:
            EngineError: The engine refuses the canonical configuration.
            CanonicalError: The canonical run was not plain, or ended early.
        """
        keys = [digest(trace.prompt, trace.tokens) for trace in traces]
        if any(self._store.get(self._group, key) is None for key in keys):
            with self._store.lock(self._group):
                missing = [i for i, key in enumerate(keys) if self._store.get(self._group, key) is None]
                self._compute([keys[i] for i in missing], [traces[i] for i in missing])
        found = [_present(self._store.get(self._group, key))[1] for key in keys]
        return [
            Canonical(Expected(_tokens(arrays["tokens"]), trace.tokens, arrays["rows"]), arrays["routing"])
            for arrays, trace in zip(found, traces, strict=True)
        ]

    def _compute(self, keys: Sequence[str], traces: Sequence[Trace]) -> None:
        if not keys:
            return
        self._store.prune()
        with Subject(self._checkpoint, self._config) as subject:
            vocabulary = subject.config.model.info.vocab_size
            for key, trace in zip(keys, traces, strict=True):  # one at a time: nothing shares a batch with it
                (answer,) = subject.answers([trace.prompt], [trace.tokens], self._max_tokens, vocabulary)
                _check_plain(answer, trace)
                observed = answer.observed
                arrays = {
                    "tokens": np.array(observed.tokens, np.int64),
                    "rows": _dense(observed.ids, observed.logprobs, vocabulary),
                    "routing": observed.routing,
                }
                self._store.put(self._group, key, {}, arrays)


def canonical_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The engine keywords of the canonical cell of the group that a configuration belongs to."""
    return {name: config[name] for name in SAME_IN_GROUP if name in config} | dict(PLAIN)


@cache
def engine_digest() -> str:
    """Hash of the engine's and the kernels' sources; an edited engine has other canonical answers."""
    modules = (staticfire.engine, staticfire.kernels)
    return code_digest(tuple(Path(module.__file__ or "").resolve().parent for module in modules))


def _check_plain(answer: Answer, trace: Trace) -> None:
    stats, observed = answer.stats, answer.observed
    first = stats.chunks[0] if stats.chunks else None
    if first != (0, len(trace.prompt)) or stats.num_preemptions or stats.num_cached_tokens:
        raise CanonicalError(f"the canonical run was not plain: {stats}")
    if not len(observed.tokens) == len(observed.ids) == len(trace.tokens):
        raise CanonicalError(
            f"the canonical run gave {len(observed.tokens)} tokens with {len(observed.ids)} log-probabilities, "
            f"{len(trace.tokens)} expected"
        )


def _dense(ids: Array, logprobs: Array, vocabulary: int) -> Array:
    """[n, V] from reported entries; -inf where nothing was reported, which no comparison accepts."""
    rows = np.full((len(ids), vocabulary), -np.inf)
    np.put_along_axis(rows, ids, logprobs, -1)
    return rows


def _pack(trace: Trace) -> tuple[dict[str, Any], dict[str, Array]]:
    noise = trace.noise
    return {"noise": [noise.max, noise.rms, noise.router]}, {
        "prompt": np.array(trace.prompt, np.int64),
        "tokens": np.array(trace.tokens, np.int64),
        "rows": trace.rows,
        "router_logits": trace.router_logits,
        "routing": trace.routing,
    }


def _unpack(stored: Stored) -> Trace:
    values, arrays = stored
    return Trace(
        _tokens(arrays["prompt"]),
        _tokens(arrays["tokens"]),
        arrays["rows"],
        arrays["router_logits"],
        arrays["routing"],
        Noise(*values["noise"]),
    )


def _tokens(array: Array) -> Tokens:
    return tuple(array.tolist())


def _present(stored: Stored | None) -> Stored:
    if stored is None:
        raise OSError("an answer vanished from the cache while it was in use")
    return stored
