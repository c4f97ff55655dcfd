"""What is found although the engine accepts: rewritten, contradicted, deprecated and redundant values."""

import pytest

from fake_engine import FakeEngine, configuration, parametrized, scan, site
from staticfire.harness.check.base import Change
from staticfire.harness.check.run import Options, check
from staticfire.harness.probe.base import Accepted, Note
from staticfire.harness.scan.base import Unknown


def checked(*sites, **options):
    return check(scan(*sites), FakeEngine(), Options(**options))


def only(report):
    (finding,) = report.findings
    return finding


def test_a_typed_block_size_that_the_worker_replaces():
    found = only(checked(site(configuration(block_size=16))))
    assert (found.kind, found.certainty, found.phase) == ("rewritten", "certain", "worker")
    assert found.message == "you typed block_size=16, the worker uses 1056"
    assert found.repairs == ((Change("block_size", drop=True),), (Change("block_size", 1056),))


def test_values_that_are_kept_or_left_to_the_engine_are_not_found():
    assert checked(site(configuration(block_size=1056))).findings == ()
    assert checked(site(configuration(block_size=None, dtype="auto"))).findings == ()
    assert checked(site(configuration("org/dense", block_size=16))).findings == ()


def test_the_default_of_a_wrapper_is_found_only_on_demand():
    wrapped = site(configuration(defaults={"block_size": 16}))
    assert checked(wrapped).findings == ()
    assert only(checked(wrapped, every_layer=True)).kind == "rewritten"


def test_a_rewrite_that_depends_on_the_unknown_is_possible():
    models = Unknown("parameter", "model", ("org/hybrid", "org/dense"))
    assert only(checked(site(configuration(models, block_size=16)))).certainty == "possible"


def test_two_typed_values_of_which_one_wins():
    found = only(checked(site(configuration(mamba_cache_mode="all", enable_prefix_caching=False))))
    assert found.kind == "contradiction"
    assert "mamba_cache_mode='all', the engine uses 'none', because of enable_prefix_caching=False" in found.message
    # Typing `none` keeps what is used; without the value that wins, the other one is in force.
    assert found.repairs == ((Change("mamba_cache_mode", "none"),), (Change("enable_prefix_caching", drop=True),))


def test_a_wrapper_whose_default_wins_is_named_and_not_to_be_edited_here():
    found = only(checked(site(configuration(defaults={"enable_prefix_caching": False}, mamba_cache_mode="all"))))
    assert found.kind == "contradiction"
    assert "because of enable_prefix_caching=False" in found.message
    assert found.repairs == ((Change("mamba_cache_mode", "none"),),)


class Scolding(FakeEngine):
    """Says of `block_size` that it goes, in words that name another keyword, too."""

    def answer(self, model, arguments):
        said = "--block-size is deprecated and has no effect: see --seed and --no-enable-prefix-caching."
        if arguments.get("block_size") is None:
            return Accepted({"cache.seed": arguments.get("seed", 0)}, {})
        return Accepted({"cache.seed": arguments.get("seed", 0)}, {}, (Note(said, "x.py:1"),))


def test_a_remark_is_about_the_keyword_that_it_names_first():
    typed = [configuration(model, block_size=16, **more) for model, more in
             (("org/hybrid", {"seed": 5}), ("org/dense", {"enable_prefix_caching": True}))]  # fmt: skip
    report = check(scan(*(site(one, line=n + 1) for n, one in enumerate(typed))), Scolding())
    found = only(report)
    assert len(found.sites) == 2
    assert found.repair == (Change("block_size", drop=True),)


class Remarking(FakeEngine):
    """Accepts, with one remark."""

    remark = ""

    def answer(self, model, arguments):
        resolved = {"model.seed": arguments.get("seed", 0), "scheduler.async_scheduling": False}
        return Accepted(resolved, {}, (Note(self.remark, "x.py:1"),))


@pytest.mark.parametrize(
    ("remark", "keywords", "about"),
    [
        # In force as it is typed: nothing is ignored.
        ("The global random seed is set to 42. This may affect the random state.", {"seed": 42}, None),
        ("seed is ignored.", {"seed": 42}, "seed"),
        ("`seed` was given. It will be ignored.", {"seed": 42}, "seed"),
        # Named by the way, in advice about another value.
        (
            "max_num_scheduled_tokens is set to 48. Consider increasing max_num_batched_tokens to fit.",
            {"max_num_batched_tokens": 64},
            None,
        ),
        # A word of the language that is also a keyword.
        ("Async scheduling is disabled because the V1 model runner does not support it.", {"runner": "auto"}, None),
        ("The runner argument is ignored.", {"runner": "auto"}, "runner"),
        ("--runner has no effect.", {"runner": "auto"}, "runner"),
        # The name of an entry is not the name of what holds it.
        ("Disabling graphs; the same as --kernel_config.warmup=False.", {"kernel_config": {"moe": "x"}}, None),
        ("async_scheduling is disabled for this model.", {"async_scheduling": True}, "async_scheduling"),
    ],
)
def test_a_remark_is_about_a_value_that_it_says_is_not_heeded(monkeypatch, remark, keywords, about):
    monkeypatch.setattr(Remarking, "remark", remark)
    found = check(scan(site(configuration("org/dense", **keywords))), Remarking()).findings
    about_them = [one.kind for one in found if one.kind == "ignored"]
    assert about_them == (["ignored"] if about else [])


def test_what_is_spoken_of_already_is_not_called_redundant_as_well():
    report = check(scan(site(configuration(block_size=16, seed=0))), Scolding(), Options(redundant=True))
    assert [(one.kind, one.repair) for one in report.findings] == [
        ("deprecated", (Change("block_size", drop=True),)),
        ("redundant", (Change("seed", drop=True),)),
    ]


def test_a_deprecated_flag_is_found_where_it_is_typed():
    found = only(checked(site(configuration(disable_sliding_window=True))))
    assert found.kind == "deprecated"
    assert "v0.40" in found.message
    assert checked(site(configuration(defaults={"disable_sliding_window": True}))).findings == ()


def test_redundant_values_are_found_on_demand():
    sites = site(configuration("org/dense", enable_chunked_prefill=True, seed=4))
    assert checked(sites).findings == ()
    found = only(checked(sites, redundant=True))
    assert (found.kind, found.level) == ("redundant", "note")
    assert found.repair == (Change("enable_chunked_prefill", drop=True),)


def test_a_value_is_redundant_only_if_it_is_in_every_parameter_set():
    base = configuration("org/dense", enable_chunked_prefill=True)
    sets = parametrized(base, a={}, b={"enable_chunked_prefill": False})
    assert checked(site(*sets), redundant=True).findings == ()


def test_a_value_that_overrides_the_default_of_a_wrapper_is_not_redundant():
    plain = site(configuration("org/dense", defaults={"enable_chunked_prefill": False}), line=1)
    overrides = site(configuration("org/dense", enable_chunked_prefill=True), line=2)
    assert checked(plain, overrides, redundant=True).findings == ()
