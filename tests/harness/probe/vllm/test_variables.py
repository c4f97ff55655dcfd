"""Which variables a site may set for the engine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.probe.vllm.variables import CODE, OWN, PASSED, only_named, passed, validated, why_withheld


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("VLLM_CACHE_ROOT", "it names a folder or a file"),
        ("VLLM_CONFIG_ROOT", "it names a folder or a file"),
        ("VLLM_DEBUG_DUMP_PATH", "it names a folder or a file"),
        ("VLLM_TUNED_CONFIG_FOLDER", "it names a folder or a file"),
        ("VLLM_LORA_RESOLVER_CACHE_DIR", "it names a folder or a file"),
        ("VLLM_ASSETS_CACHE", "it names a folder or a file"),
        ("VLLM_LOGGING_CONFIG_PATH", "it names a folder or a file"),
        ("HF_HOME", "it names a folder or a file"),
        ("TRITON_CACHE_DIR", "it names a folder or a file"),
        ("VLLM_API_KEY", "it is a secret"),
        ("HF_TOKEN", "it is a secret"),
        ("S3_SECRET_ACCESS_KEY", "it is a secret"),
        ("S3_ACCESS_KEY_ID", "it is a secret"),
        ("AWS_SESSION_TOKEN", "it is a secret"),
        ("VLLM_PLUGINS", "it chooses code to load"),
        ("VLLM_USE_MODELSCOPE", "it chooses code to load"),
        ("VLLM_RUST_FRONTEND_PATH", "it chooses code to load"),
        ("VLLM_NCCL_SO_PATH", "it chooses code to load"),
        ("PYTHONPATH", "it chooses code to load"),
        ("LD_PRELOAD", "it chooses code to load"),
        ("VLLM_HOST_IP", "it names a machine or a port"),
        ("VLLM_PORT", "it names a machine or a port"),
        ("VLLM_USAGE_STATS_SERVER", "it names a machine or a port"),
        ("VLLM_DP_MASTER_PORT", "it names a machine or a port"),
        ("VLLM_TARGET_DEVICE", "the presented device decides"),
        ("VLLM_LOG_STATS_INTERVAL", "it decides no verdict"),
        ("NCCL_DEBUG", "it is not the engine's"),
        ("VLLM_USE_V2_MODEL_RUNNER", ""),
        ("VLLM_ALLOW_LONG_MAX_MODEL_LEN", ""),
    ],
)
def test_a_variable_that_is_not_passed_has_a_reason(name, why):
    assert why_withheld(name) == why
    assert passed({name: "x"}) == ({} if why else {name: "x"})


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_whatever_is_set_only_the_list_is_passed(variables):
    assert passed(variables).keys() == {name for name in variables if not why_withheld(name)}
    assert set(passed(variables)) <= set(PASSED)


def test_the_lists_do_not_overlap_and_no_folder_or_secret_is_passed():
    assert not set(PASSED) & (set(OWN) | CODE)
    words = {"PATH", "DIR", "ROOT", "FOLDER", "FILE", "HOME", "KEY", "TOKEN", "SECRET", "PASSWORD", "PLUGINS"}
    assert not [name for name in PASSED if words & set(name.split("_"))]


@pytest.mark.parametrize(
    ("keywords", "words", "expected"),
    [
        ({}, None, False),
        ({"fail_on_environ_validation": True}, None, True),
        ({"fail_on_environ_validation": False}, None, False),
        ({"fail_on_environ_validation": True}, (), False),  # the command line is what is typed
        ({}, ("--fail-on-environ-validation",), True),
        ({}, ("--fail_on_environ_validation",), True),
        ({}, ("--fail-on-environ",), True),  # argparse takes a beginning for the whole
        ({}, ("--block-size", "16", "--seed=1"), False),
        ({}, ("--",), False),
    ],
)
def test_who_asks_for_the_names_of_variables_to_be_checked(keywords, words, expected):
    assert validated(keywords, words) == expected


def test_only_names_of_the_engine_that_are_withheld_are_told():
    variables = {"VLLM_NO_SUCH": "1", "VLLM_PORT": "80", "HF_TOKEN": "x", "VLLM_BATCH_INVARIANT": "1"}
    assert only_named({**variables, "VLLM_LOGGING_LEVEL": "DEBUG"}) == ["VLLM_NO_SUCH", "VLLM_PORT"]
