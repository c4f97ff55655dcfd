"""A site that has the engine check the names of variables is refused for one that the engine does not know."""

from dataclasses import replace

import pytest

from staticfire.harness.probe.base import Accepted, Rejected

pytestmark = pytest.mark.vllm

STRANGE = {"VLLM_NO_SUCH_VARIABLE": "/some/folder"}
KNOWN = {"VLLM_PORT": "8000", "VLLM_LOGGING_LEVEL": "DEBUG", "HF_TOKEN": "secret"}


def asked(question, environment, **typed):
    return replace(question("llama-3.1-8b", **typed), environment=environment)


@pytest.mark.parametrize("version", ["0.28.0", "0.33.0"])
def test_an_unknown_variable_is_refused_where_the_site_asks_for_it(open_probe, question, version):
    checked = {"fail_on_environ_validation": True}
    served = question("llama-3.1-8b", "serve", ("--fail-on-environ-validation",))
    questions = [
        asked(question, STRANGE, **checked),
        replace(served, environment=STRANGE),
        asked(question, STRANGE),
        asked(question, KNOWN, **checked),
        asked(question, {}, **checked),
    ]
    strange, on_the_command_line, unchecked, known, bare = open_probe(version).answer(questions)
    for refused in (strange, on_the_command_line):
        assert isinstance(refused, Rejected)
        assert "Unknown vLLM environment variable detected: VLLM_NO_SUCH_VARIABLE" in refused.message
        assert "/some/folder" not in refused.message
    assert all(isinstance(outcome, Accepted) for outcome in (unchecked, known, bare))
