"""Coverage names the parts of an answer that are not known, and what kept a site from being judged."""

import click
import pytest

from fake_engine import FakeEngine, configuration, scan, site
from staticfire.harness.check import run
from staticfire.harness.check.formats.registry import FORMATS
from staticfire.harness.check.question import UnknownModel
from staticfire.harness.probe.base import BEYOND, PARTS, Accepted, Crashed, NotKnown, Rejected, Settled, Undecided


class Scripted(FakeEngine):
    """Answers by the model alone."""

    def answer(self, model, arguments):
        return {
            "org/mla": Accepted(capacity=NotKnown("latent attention")),
            "org/kernel": Undecided({}, NotKnown("no such package")),
            "org/whole": Accepted(capacity=Settled({"blocks_at_most": 9})),
            "org/broken": UnknownModel(model, fault="/x/config.json: is not JSON"),
            "org/limit": Crashed(f"{BEYOND}: pipeline_parallel_size=2", lasting=True),
        }[model]


def report_on(*models, form="LLM"):
    sites = [site(configuration(name), line=line, form=form) for line, name in enumerate(models, 1)]
    return run.check(scan(*sites), Scripted())


def test_each_is_counted_under_its_reason():
    report = report_on("org/mla", "org/broken", "org/limit", "org/kernel", "org/whole")
    assert report.findings == ()
    coverage = report.coverage
    assert coverage.by_reason == {
        "not judged: the front end accepts, and of the worker it is not known": 1,
        "not judged: the model's configuration cannot be read: /x/config.json: is not JSON": 1,
        f"not judged: {BEYOND}": 1,
    }
    assert (coverage.judged, coverage.unknown_model, coverage.unknown_models) == (2, 1, {})
    assert coverage.unanswered == {f"{BEYOND}: pipeline_parallel_size=2": 1}
    assert coverage.not_known == {
        "front end": {f"{BEYOND}: pipeline_parallel_size=2": 1},
        "worker": {"no such package": 1},
        "capacity": {"latent attention": 1},
    }


def test_a_worker_that_is_not_known_does_not_count_as_judged():
    report = report_on("org/kernel")
    assert report.last_line == "0 findings; 0 of 1 sites judged"
    assert report.verdicts[0].unknown == ("worker: no such package",)


@pytest.mark.parametrize("form", ["EngineArgs", "AsyncEngineArgs", "VllmConfig"])
def test_where_the_code_only_makes_a_configuration_the_front_end_is_enough(form):
    report = report_on("org/kernel", "org/mla", form=form)
    assert (report.coverage.judged, report.coverage.not_known) == (2, {})


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_that_shows_coverage_says_what_is_not_known(name):
    rendered = FORMATS[name].render(report_on("org/kernel"))
    if name in {"text", "json", "junit", "sarif"}:
        assert "no such package" in rendered
    else:
        assert "0 of 1 sites judged" in click.unstyle(rendered)


class Refusing(FakeEngine):
    """Refuses in the part that the model names."""

    def answer(self, model, arguments):
        phase = model.removeprefix("org/").replace("-", " ")
        return Rejected("rule", "no valid attention backend", "vllm/x.py:1", phase=phase)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("form", "runs"), [("LLM", True), ("shell", True), ("EngineArgs", False), ("AsyncEngineArgs", False)]
)
def test_a_refusal_is_certain_only_where_the_part_that_refuses_is_sure_to_run(part, form, runs):
    model = f"org/{part.replace(' ', '-')}"
    report = run.check(scan(site(configuration(model), form=form)), Refusing())
    (finding,) = report.findings
    assert (finding.phase, finding.certainty) == (part, "certain" if runs or part == "front end" else "possible")
    assert report.coverage.judged == 1


def test_a_refusal_with_a_doubt_is_possible_and_says_why():
    class Doubting(FakeEngine):
        def answer(self, model, arguments):
            return Rejected("rule", "no common page", "vllm/x.py:1", phase="worker", doubt="the layers are stand-ins")

    (finding,) = run.check(scan(site(configuration("org/any"), form="LLM")), Doubting()).findings
    assert finding.certainty == "possible"
    assert "the layers are stand-ins" in finding.sites[0].why


class Small(FakeEngine):
    """Refuses `seed` for want of blocks; without it the blocks are as the model says."""

    def answer(self, model, arguments):
        if "seed" in arguments:
            return Rejected("rule", "seed takes too many blocks", "vllm/x.py:1", phase="capacity")
        known = model == "org/known"
        return Accepted(capacity=Settled({"blocks_at_most": 1}) if known else NotKnown("sliding windows"))


@pytest.mark.parametrize(("model", "mended"), [("org/known", True), ("org/open", False)])
def test_a_refusal_for_want_of_blocks_is_mended_only_by_an_answer_that_counts_them(model, mended):
    (finding,) = run.check(scan(site(configuration(model, seed=1), form="LLM")), Small()).findings
    assert bool(finding.repairs) is mended


class Half(FakeEngine):
    """The front end refuses `seed`; of the worker nothing is known."""

    def answer(self, model, arguments):
        if "seed" in arguments:
            return Rejected("rule", "no seed here", "vllm/x.py:1")
        return Undecided({}, NotKnown("no such package"))


@pytest.mark.parametrize(("form", "mended"), [("LLM", False), ("EngineArgs", True)])
def test_no_repair_rests_on_a_worker_that_is_not_known(form, mended):
    (finding,) = run.check(scan(site(configuration("org/any", seed=1), form=form)), Half()).findings
    assert bool(finding.repairs) is mended
