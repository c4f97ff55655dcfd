"""How the values of a refusal came to be, by who typed them."""

import pytest

from fake_engine import FakeEngine, configuration, scan, site
from staticfire.harness.check import run
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
    *told, model = found.chain
    assert told[0] == "cache.enable_prefix_caching = True (not typed; the default)"
    assert told[1] == "cache.mamba_cache_mode = 'align' (not typed; the engine chose it)"
    assert told[2].startswith("scheduler.enable_chunked_prefill = False (typed by a wrapper's default at ")
    assert told[3].startswith("scheduler.max_num_batched_tokens = 2048 (typed at ")
    assert told[4].startswith("cache.block_size = 1056 (typed at ")
    assert told[4].endswith(" as 16; the engine made it this)")
    assert model == "config.json.num_attention_heads = 32 (the model's own configuration)"


@pytest.mark.parametrize("seen", [()])
def test_an_engine_that_explains_its_values_itself_is_asked(monkeypatch, seen):
    monkeypatch.setattr(Telling, "seen", seen)
    typed = configuration(enable_chunked_prefill=False)
    report = run.check(scan(site(typed)), Telling())
    (found,) = [one for one in report.findings if "Chunked prefill" in one.message]
    assert found.chain == ("mamba_cache_mode=align: derived",)
