"""A flat configuration whose class is of another family, or of none, is refused with the name that would fit."""

import pytest

from staticfire.engine.config import ConfigError, model_info
from staticfire.engine.config.architectures import STEMS
from staticfire.engine.config.families.registry import BY_MODEL_TYPE
from staticfire.harness.models import catalog

QWEN = dict(catalog.load("qwen3.6-35b-a3b").config)["text_config"]


def named(config, *architectures):
    return {**config, "architectures": list(architectures)}


@pytest.mark.parametrize(
    ("model", "architecture", "words"),
    [
        (
            "jamba-tiny",
            "LlamaForCausalLM",
            "of another family than model_type='jamba', whose class is JambaForCausalLM",
        ),
        (
            "llama-tiny",
            "JambaForCausalLM",
            "of another family than model_type='llama', whose class is LlamaForCausalLM",
        ),
        ("jamba-tiny", "JmbaForCausalLM", "no architecture we can read; did you mean 'JambaForCausalLM'?"),
        ("jamba-tiny", "Foo", "no architecture we can read; model_type='jamba' has JambaForCausalLM"),
        ("falcon-h1-0.5b", "MambaForCausalLM", "of another family than model_type='falcon_h1'"),
    ],
)
def test_a_class_that_does_not_fit_is_refused(model, architecture, words):
    with pytest.raises(ConfigError, match="cannot be read") as raised:
        model_info(named(catalog.load(model).config, architecture), model)
    (fault,) = raised.value.faults
    assert fault.field == "architectures"
    assert words in fault.message


@pytest.mark.parametrize("architecture", ["Qwen3_5ForCausalLM", "Qwen3NextForCausalLM", "Qwen3ForCausalLM"])
def test_a_flat_mixture_of_experts_is_not_its_dense_sibling(architecture):
    with pytest.raises(ConfigError, match="Qwen3_5MoeForCausalLM"):
        model_info(named(QWEN, architecture), "m")


@pytest.mark.parametrize(
    ("config", "architecture"),
    [
        (QWEN, "Qwen3_5MoeForCausalLM"),
        (QWEN, "Qwen3_5MoeForConditionalGeneration"),
        (catalog.load("llama-tiny").config, "LlamaForSequenceClassification"),
        (catalog.load("llama-tiny").config, "LLaMAForCausalLM"),
        (catalog.load("llama-tiny").config, "MistralForCausalLM"),
        (catalog.load("nemotron-h-8b").config, "NemotronHPuzzleForCausalLM"),
        (catalog.load("jamba-tiny").config, "JambaForSequenceClassification"),
    ],
)
def test_other_classes_of_the_family_are_read(config, architecture):
    assert model_info(named(config, architecture), "m").architecture == architecture


def test_every_family_has_a_name_in_common():
    assert set(STEMS) == set(BY_MODEL_TYPE)
