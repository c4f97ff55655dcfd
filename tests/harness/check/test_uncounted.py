"""Coverage names what was judged without its capacity, and what a limit or an unusable file kept from being judged."""

from fake_engine import FakeEngine, configuration, scan, site
from staticfire.harness.check import run
from staticfire.harness.check.question import UnknownModel
from staticfire.harness.probe.base import BEYOND, Accepted, Crashed


class Scripted(FakeEngine):
    """Answers by the model alone."""

    def answer(self, model, arguments):
        return {
            "org/mla": Accepted({}, {"capacity.unknown": "latent attention"}),
            "org/broken": UnknownModel(model, fault="/x/config.json: is not JSON"),
            "org/limit": Crashed(f"{BEYOND}: pipeline_parallel_size=2", lasting=True),
        }[model]


def test_each_is_counted_under_its_reason():
    sites = [
        site(configuration(name), line=line) for line, name in enumerate(("org/mla", "org/broken", "org/limit"), 1)
    ]
    report = run.check(scan(*sites), Scripted())
    assert report.findings == ()
    coverage = report.coverage
    assert coverage.by_reason == {
        "judged, but not the blocks of its cache: latent attention": 1,
        "not judged: the model's configuration cannot be read: /x/config.json: is not JSON": 1,
        f"not judged: {BEYOND}": 1,
    }
    assert (coverage.judged, coverage.unknown_model, coverage.unknown_models) == (1, 1, {})
    assert coverage.unanswered == {f"{BEYOND}: pipeline_parallel_size=2": 1}
