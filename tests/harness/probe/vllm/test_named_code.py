"""Which arguments name code, and what is asked without them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.probe.vllm.named_code import FIELDS, without

CONNECTOR = {"kv_connector": "Mine", "kv_role": "kv_both", "kv_connector_module_path": "evil"}


@pytest.mark.parametrize(
    ("arguments", "left", "names"),
    [
        ({"scheduler_cls": "evil.Scheduler", "block_size": 8}, {"block_size": 8}, ("scheduler_cls",)),
        ({"scheduler_cls": "vllm.v1.core.sched.scheduler.Scheduler"}, None, ()),
        ({"worker_cls": "auto"}, None, ()),
        ({"worker_cls": "evil.Worker"}, {}, ("worker_cls",)),
        ({"worker_extension_cls": "evil.Mixin"}, {}, ("worker_extension_cls",)),
        ({"distributed_executor_backend": "ray"}, None, ()),
        ({"distributed_executor_backend": "wrong"}, None, ()),
        ({"distributed_executor_backend": "evil.Executor"}, {}, ("distributed_executor_backend",)),
        ({"logits_processors": ["evil:P"]}, {}, ("logits_processors",)),
        ({"tool_parser_plugin": "/x/evil.py", "seed": 1}, {"seed": 1}, ("tool_parser_plugin",)),
        ({"middleware": ["evil.M"]}, {}, ("middleware",)),
        ({"kv_transfer_config": CONNECTOR}, {}, ("kv_transfer_config.kv_connector_module_path",)),
        ({"kv_transfer_config": {"kv_connector": "NixlConnector", "kv_role": "kv_both"}}, None, ()),
        (
            {"kv_transfer_config": {"kv_connector_extra_config": {"tiers": [{"type": "x", "module_path": "evil"}]}}},
            {},
            ("kv_transfer_config",),
        ),
        (
            {"compilation_config": {"backend": "evil.compile", "mode": 1}},
            {"compilation_config": {"mode": 1}},
            ("compilation_config.backend",),
        ),
        ({"compilation_config": {"backend": "inductor"}}, None, ()),
        ({"structured_outputs_config": {"backend": "xgrammar:disable-any-whitespace"}}, None, ()),
        (
            {"compilation_config": {"inductor_passes": {"post_grad": "evil.f"}, "mode": 3}},
            {"compilation_config": {"mode": 3}},
            ("compilation_config.inductor_passes",),
        ),
        (
            {"hf_overrides": {"auto_map": {"AutoConfig": "evil.C"}, "num_hidden_layers": 2}},
            {"hf_overrides": {"num_hidden_layers": 2}},
            ("hf_overrides.auto_map",),
        ),
        ({"scheduler.scheduler_cls": "evil.S", "cache.block_size": 8}, {"cache.block_size": 8}, None),
        (
            {"kv_transfer.kv_connector_module_path": "evil", "kv_transfer.kv_connector": "M", "cache.block_size": 8},
            {"cache.block_size": 8},
            None,
        ),
        ({"scheduler_cls": None, "worker_cls": "", "logits_processors": []}, None, ()),
    ],
)
def test_what_names_code_is_left_out_and_named(arguments, left, names):
    question = without(arguments)
    assert question.arguments == (arguments if left is None else left)
    assert names is None or question.left_out == names


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("evil.module"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FIELDS, "other", "mode"]), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*FIELDS, "kv_transfer_config", "compilation_config", "seed"]), _json))
def test_no_question_keeps_a_field_that_names_code_and_asking_again_changes_nothing(arguments):
    question = without(arguments)
    assert without(question.arguments) == without(without(question.arguments).arguments)
    assert without(question.arguments).left_out == ()
    assert question.arguments.keys() <= arguments.keys()
    if not question.left_out:
        assert json.dumps(question.arguments) == json.dumps(arguments)
