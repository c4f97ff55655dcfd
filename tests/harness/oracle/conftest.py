import numpy as np
import pytest


@pytest.fixture(scope="session")
def jamba(cache_dir):
    from staticfire.harness.models.make import ensure

    return ensure("jamba-tiny", cache_dir)


@pytest.fixture(scope="session")
def llama(cache_dir):
    from staticfire.harness.models.make import ensure

    return ensure("llama-tiny", cache_dir)


@pytest.fixture(scope="session")
def cuts(jamba):
    """Prompts of real text: 5, 33 and 70 tokens (both tiny models share the tokenizer's training text)."""
    from staticfire.engine.tokenizer import load_tokenizer
    from staticfire.harness.models.prompts import sized_prompts

    tokenizer = load_tokenizer(jamba)
    assert tokenizer is not None
    return [prompt.token_ids for prompt in sized_prompts(tokenizer, (5, 33, 70))]


@pytest.fixture
def rng():
    return np.random.default_rng(7)
