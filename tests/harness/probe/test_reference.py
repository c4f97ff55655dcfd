"""The reference probe against answers that are known from the rules themselves."""

import subprocess
import sys

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.models import devices
from staticfire.harness.probe.base import Accepted, Rejected
from staticfire.harness.probe.reference import ReferenceProbe


@pytest.fixture(scope="module")
def probe():
    return ReferenceProbe()


def test_accepted_with_resolved_and_runtime_values(probe):
    answer = probe.ask("jamba-tiny-grow", {"block_size": 16})
    assert isinstance(answer, Accepted)
    assert answer.resolved["cache.mamba_cache_mode"] == "align"
    assert answer.resolved["cache.block_size"] == 16
    # 2432 state elements over 32 elements a token are 76 tokens; the next multiple of 16 is 80.
    assert answer.runtime["block_size"] == 80


def test_rejected_by_a_rule_with_its_code(probe):
    answer = probe.ask("jamba-tiny", {"enable_chunked_prefill": False})
    assert isinstance(answer, Rejected)
    assert answer.kind == "rule"
    assert "SF101" in answer.rules
    assert "align-without-chunked-prefill" in answer.origin
    assert "chunked prefill" in answer.message


def test_rejected_for_an_unknown_keyword(probe):
    answer = probe.ask("jamba-tiny", {"blocksize": 16})
    assert isinstance(answer, Rejected)
    assert answer.kind == "field"
    assert "did you mean 'block_size'" in answer.message


def test_what_cannot_be_run_yet_is_rejected_though_it_resolves(probe):
    answer = probe.ask("bamba-9b", {"max_model_len": 128})
    assert isinstance(answer, Rejected)
    assert "family-not-runnable" in answer.rules


def test_the_device_counts():
    config = {"quantization": "experts_int8", "dtype": "bfloat16", "max_model_len": 128}
    answers = [ReferenceProbe(devices.find(name)).ask("jamba-tiny", config) for name in ("l4", "cpu")]
    assert all(isinstance(answer, Accepted) for answer in answers)


def test_field_faults(probe):
    assert probe.field_fault("block_size", 16) is None
    assert "did you mean 'block_size'" in probe.field_fault("blok_size", 16)
    assert "did you mean 'bfloat16'" in probe.field_fault("dtype", "bflot16")
    assert probe.field_fault("block_size", 0) is not None


def test_rules_by_code(probe):
    assert probe.rule_name("SF101") == "align-without-chunked-prefill"
    assert probe.rule_name("SF999") is None
    assert "SF101" in probe.rule_codes()
    assert list(probe.rule_codes()) == sorted(probe.rule_codes())


def test_an_unknown_model_is_the_users_fault(probe):
    with pytest.raises(InputError, match="Did you mean 'jamba-tiny'"):
        probe.ask("jamba-tinny", {})


def test_it_imports_no_torch():
    code = (
        "import sys; from staticfire.harness.probe.reference import ReferenceProbe;"
        "ReferenceProbe().ask('jamba-tiny', {});"
        "sys.exit(bool({'torch', 'transformers', 'numpy'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
