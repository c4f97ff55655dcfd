from dataclasses import replace

import pytest

from fake_engine import FakeEngine, configuration, parametrized, scan, site
from staticfire.harness.check import run
from staticfire.harness.check.base import Silenced
from staticfire.harness.scan.base import Guard, Location, Negative, Unknown, Unread

SOURCES = {
    "tests/quantization/test_int8.py": {
        28: "    with vllm_runner(model, dtype=dtype) as engine:",
    },
    "tests/test_a.py": {
        3: "\t\tr = [\x1b vllm_runner(m, block_size=16, ),\t]",
        7: '    with Server("org/dense", ["--max-num-batched-tokens", "9000"]) as server:',
    },
}


@pytest.fixture
def report():
    """A report with every kind of line that a format has to show."""
    runner = {"enable_chunked_prefill": False, "max_model_len": 1024}
    base = configuration(defaults=runner, quantization="experts_int8")
    guard = Guard("skipif", 'not is_quant_method_supported("experts_int8")', Location("x.py", 1, 1))
    founding = site(
        *parametrized(base, **{"4-half-org/hybrid": {"dtype": "half"}, "4-half-org/dense": {"model": "org/dense"}}),
        path="tests/quantization/test_int8.py",
        line=28,
        function="test_startup",
        guards=(guard,),
    )
    expected = Negative(("ValueError",), "Chunked prefill is required", Location("tests/test_a.py", 20, 5))
    sites = [
        founding,
        site(configuration(block_size=16), line=3),
        site(configuration("org/dense", max_num_batched_tokens=9000), line=7, form="RemoteOpenAIServer"),
        site(configuration(enable_chunked_prefill=False, seed=Unknown("call", "f()")), line=12),
        site(configuration("org/dense", negative=expected), line=21),
        site(configuration("org/dense", disable_sliding_window=True, seed=1), line=30, form="LLM"),
        site(configuration("org/elsewhere"), line=40, form="LLM"),
        site(configuration("org/crash"), line=41, form="LLM"),
        site(configuration(guards=(Guard("skip", "later", Location("x.py", 1, 1), True),)), line=42),
        site(configuration("org/dense", swap_space=4), line=50),
    ]
    found = replace(scan(*sites), unread=(Unread("tests/new.py", 3, "it does not parse: invalid syntax"),))
    made = run.check(found, FakeEngine())
    (allowed,) = [one for one in made.findings if "swap_space" in one.message]
    left = tuple(one for one in made.findings if one != allowed)
    silenced = (Silenced(allowed, "comment", "swapping returns next month"),)
    return replace(
        made,
        findings=left,
        silenced=silenced,
        stale=("0123456789abcdef gone: refused: swapping (tests/old.py)", "fedcba9876543210 1 of 3 left"),
        lines=SOURCES,
    )
