"""How the values of a refusal came to be, by who typed them."""

from dataclasses import replace

import pytest

from fake_engine import FakeEngine, configuration, scan, site
from fake_engine import typed as typed_value
from staticfire.harness.check import run
from staticfire.harness.check.cases import site_cases
from staticfire.harness.check.chain import told
from staticfire.harness.check.question import Desk
from staticfire.harness.probe.base import Rejected, Seen


class Telling(FakeEngine):
    """Says of its first rule what it looked at."""

    seen = (
        Seen("cache.enable_prefix_caching", True, default=True),
        Seen("cache.mamba_cache_mode", "align"),
        Seen("scheduler.enable_chunked_prefill", False),
        Seen("scheduler.max_num_batched_tokens", 2048),
        Seen("cache.block_size", 1056),
        Seen("config.json.num_attention_heads", 32),
    )

    def ask(self, questions):
        answers = super().ask(questions)
        return [
            Rejected("rule", one.message, one.origin, one.rules, values=self.seen)
            if isinstance(one, Rejected) and "Chunked prefill" in one.message
            else one
            for one in answers
        ]


def test_every_value_is_told_with_who_set_it():
    typed = configuration(defaults={"enable_chunked_prefill": False}, max_num_batched_tokens=2048, block_size=16)
    report = run.check(scan(site(typed, line=28)), Telling())
    (found,) = [one for one in report.findings if "Chunked prefill" in one.message]
    *links, model = found.chain
    assert links[0] == "cache.enable_prefix_caching = True (not typed; the default)"
    assert links[1] == "cache.mamba_cache_mode = 'align' (not typed; the engine chose it)"
    assert links[2].startswith("scheduler.enable_chunked_prefill = False (typed by a wrapper's default at ")
    assert links[3].startswith("scheduler.max_num_batched_tokens = 2048 (typed at ")
    assert links[4].startswith("cache.block_size = 1056 (typed at ")
    assert links[4].endswith(" as 16; the engine made it this)")
    assert model == "config.json.num_attention_heads = 32 (in the model's configuration)"


@pytest.mark.parametrize("seen", [()])
def test_an_engine_that_explains_its_values_itself_is_asked(monkeypatch, seen):
    monkeypatch.setattr(Telling, "seen", seen)
    typed = configuration(enable_chunked_prefill=False)
    report = run.check(scan(site(typed)), Telling())
    (found,) = [one for one in report.findings if "Chunked prefill" in one.message]
    assert found.chain == ("mamba_cache_mode=align: derived",)


def test_its_own_sentence_about_what_is_typed_gets_the_place(monkeypatch):
    said = (
        "enable_chunked_prefill=False: typed",
        "block_size=16: typed, and kept",
        "max_num_seqs=4: typed",
        "dtype=half",
    )
    monkeypatch.setattr(Telling, "seen", ())
    monkeypatch.setattr(Telling, "chain", lambda *_: said)
    typed = configuration(defaults={"enable_chunked_prefill": False}, block_size=16)
    report = run.check(scan(site(typed)), Telling())
    (found,) = [one for one in report.findings if "Chunked prefill" in one.message]
    where = typed.keywords["enable_chunked_prefill"].where
    first = f"enable_chunked_prefill=False: typed by a wrapper's default at {where.path}:{where.line}"
    assert found.chain == (first, *said[1:])


class Nested(FakeEngine):
    """Refuses everything, and says what it looked at."""

    seen = (
        Seen("speculative.method", "eagle"),
        Seen("speculative.quantization", "fp8"),
        Seen("cache.block_size", 16),
        Seen("num_gpu_blocks", 4),
    )

    def ask(self, questions):
        return [Rejected("rule", "no", "x.py:1", values=self.seen) for _ in questions]


def test_a_value_inside_a_typed_configuration_is_typed():
    inside = {"method": "eagle", "model": "org/draft"}
    typed = configuration(enable_chunked_prefill=False, block_size=16)
    typed = replace(typed, keywords={
        **typed.keywords,
        "speculative_config": typed_value(inside, line=7),
        "cache_config.num_gpu_blocks": typed_value(4, line=8),
        "quantization": typed_value("fp8", line=9),
    })  # fmt: skip
    (variant,) = site_cases(site(typed))[0].variants
    assert told(variant, Desk(Nested())) == (
        "speculative.method = 'eagle' (typed at tests/test_a.py:7)",
        "speculative.quantization = 'fp8' (not typed; the engine chose it)",
        "cache.block_size = 16 (typed at tests/test_a.py:1)",
        "num_gpu_blocks = 4 (typed at tests/test_a.py:8)",
    )
