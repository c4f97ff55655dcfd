"""How much two answers may differ, by dtype: the one table of tolerances.

Values are log-probabilities in nats. `times` multiplies noise that was measured on the oracle alone; noise above its
cap counts as the cap, so that an oracle gone noisy cannot excuse an engine.
"""

from dataclasses import dataclass, replace

from staticfire.harness.oracle.base import Noise, OracleError, Question

SUSPECT = 10.0
"""Off by less than this many times the allowance is `suspect`, by more is `wrong`."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What is allowed in one comparison.

    Attributes:
        max: Largest |delta logprob| at any checked entry.
        rms: Root mean square of the deltas of one prompt.
        margin: Two tokens may change places if the reference puts them no further apart than this.
        router: Two experts may change places if their router logits are no further apart than this.
    """

    max: float
    rms: float
    margin: float
    router: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A tolerance as a function of noise.

    Attributes:
        max: Fixed bound on one delta; None derives it from noise.
        rms: Fixed bound on the root mean square; None derives it from noise.
        times: Noise multiple for the derived bounds.
        margin_times: Noise multiple for the margins of tokens and experts.
        floor: Noise below this counts as this (a lucky oracle must not condemn an engine).
        cap: Noise above this counts as this.
        cap_rms: The same for the root mean square.
        cap_router: The same for router logits.
    """

    max: float | None = None
    rms: float | None = None
    times: float = 1.0
    margin_times: float = 10.0
    floor: float = 0.0
    cap: float
    cap_rms: float
    cap_router: float

    def tolerance(self, noise: Noise) -> Tolerance:
        """What is allowed when the oracle's own noise is `noise`."""
        largest = min(max(noise.max, self.floor), self.cap)
        mean = min(max(noise.rms, self.floor), self.cap_rms)
        router = min(max(noise.router, self.floor), self.cap_router)
        return Tolerance(
            max=self.times * largest if self.max is None else self.max,
            rms=self.times * mean if self.rms is None else self.rms,
            margin=self.margin_times * largest,
            router=self.margin_times * router,
        )


_FLOAT32 = Law(max=1e-4, rms=2e-5, floor=1e-6, cap=5e-5, cap_rms=1e-5, cap_router=5e-5)
_BFLOAT16 = Law(times=2.0, margin_times=2.0, floor=1e-3, cap=1.0, cap_rms=0.2, cap_router=1.0)

AGAINST_ORACLE: dict[str, Law] = {
    # transformers keeps float32 steps (norms, softmax, the decay) in a float64 model: measured 9e-6, rms 2e-6, and
    # where both its paths take the same steps (Llama) its own noise shows nothing of it: hence the floor
    "float64": Law(max=4e-5, rms=8e-6, floor=5e-6, cap=2e-5, cap_rms=5e-6, cap_router=2e-5),
    "float32": _FLOAT32,
    "bfloat16": _BFLOAT16,
    "float16": Law(times=2.0, margin_times=2.0, floor=1e-4, cap=0.2, cap_rms=0.04, cap_router=0.2),
}
"""dtype -> what the engine owes transformers."""

ROUNDED_STATES = Law(times=3.0, margin_times=3.0, floor=1e-4, cap=0.3, cap_rms=0.05, cap_router=0.3)
"""Where a cache is narrower than the arithmetic: every cut, hit and step rounds, each configuration elsewhere."""

QUANTIZED_FLOAT32_RMS = 1e-5
"""Against W' = q * s in float32 an fp32 engine is held to this root mean square: a scale off by one part in a million
is invisible, a scale off by one int8 step is a thousand times as large."""

AGAINST_ITSELF: dict[str, Law] = {
    "float64": Law(max=1e-9, rms=1e-9, margin_times=0.0, cap=0.0, cap_rms=0.0, cap_router=0.0),
    "float32": _FLOAT32,
    "bfloat16": _BFLOAT16,
    "float16": AGAINST_ORACLE["float16"],
}
"""dtype -> what one configuration of the engine owes another."""


def against_oracle(question: Question, noise: Noise) -> Tolerance:
    """Tolerance of the engine against the oracle.

    Raises:
        OracleError: No law is known for this dtype.
    """
    found = _law(AGAINST_ORACLE, question).tolerance(noise)
    if question.quantization is not None and question.dtype == "float32" and not question.rounds_states:
        return replace(found, rms=QUANTIZED_FLOAT32_RMS)
    return found


def against_itself(question: Question, noise: Noise) -> Tolerance:
    """Tolerance between two configurations of the engine; `noise` is still the oracle's.

    Raises:
        OracleError: No law is known for this dtype.
    """
    return _law(AGAINST_ITSELF, question).tolerance(noise)


def _law(laws: dict[str, Law], question: Question) -> Law:
    if question.dtype not in laws:
        raise OracleError(f"no law for dtype {question.dtype!r}; known: {', '.join(laws)}")
    wide = question.dtype in ("float32", "float64")
    return ROUNDED_STATES if wide and question.rounds_states else laws[question.dtype]
