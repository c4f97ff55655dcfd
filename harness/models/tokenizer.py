"""A byte-level BPE tokenizer trained on the text that the project ships."""

from collections.abc import Iterable, Mapping
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

SPECIAL = {"pad_token": "<|pad|>", "bos_token": "<|bos|>", "eos_token": "<|eos|>"}
"""In the order of their ids, which the tiny configurations declare as 0, 1 and 2."""


def train(texts: Iterable[str], config: Mapping[str, Any]) -> PreTrainedTokenizerFast:
    """Train a tokenizer that fills the configuration's vocabulary exactly.

    No special token is added when encoding, so a text's tokens are a prefix of the tokens of a longer cut.

    Args:
        texts: Training texts.
        config: The model's configuration: `vocab_size`, `max_position_embeddings` and the special ids.

    Returns:
        The tokenizer, ready for `save_pretrained`.
    """
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config["vocab_size"],
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    declared = [config[f"{kind.removesuffix('_token')}_token_id"] for kind in SPECIAL]
    assert [core.token_to_id(token) for token in SPECIAL.values()] == declared, declared
    assert core.get_vocab_size() == config["vocab_size"], core.get_vocab_size()
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_max_length=config["max_position_embeddings"],
        clean_up_tokenization_spaces=False,
        **SPECIAL,
    )
