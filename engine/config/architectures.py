"""Whether the class that a `config.json` names belongs to the family that its `model_type` says."""

from difflib import get_close_matches
from typing import Final

from staticfire.engine.config.errors import Fault

STEMS: Final = {
    "jamba": "Jamba",
    "mamba": "Mamba",
    "falcon_mamba": "FalconMamba",
    "bamba": "Bamba",
    "nemotron_h": "NemotronH",
    "granitemoehybrid": "GraniteMoeHybrid",
    "falcon_h1": "FalconH1",
    "qwen3_next": "Qwen3Next",
    "qwen3_5": "Qwen3_5",
    "qwen3_5_text": "Qwen3_5",
    "qwen3_5_moe": "Qwen3_5Moe",
    "qwen3_5_moe_text": "Qwen3_5Moe",
    "llama": "Llama",
    "qwen3": "Qwen3",
}
"""`model_type` -> what the names of its classes have in common."""
LIKE_LLAMA: Final = ("InternLM3", "IQuestCoder", "TeleChat3", "Mistral")
"""Classes that vLLM runs by its Llama (vllm/model_executor/models/registry.py)."""


def architecture_fault(declared: str, model_type: str) -> Fault | None:
    """Look for the family in the name of the class.

    Args:
        declared: The first of `architectures`.
        model_type: A family that can be read.

    Returns:
        What is wrong, with the nearest name; None where the two fit.
    """
    wanted = STEMS[model_type]
    told = declared.lower()
    found = max((stem for stem in STEMS.values() if stem.lower() in told), key=len, default=None)
    if found == wanted or (model_type == "llama" and declared.startswith(LIKE_LLAMA)):
        return None
    names = [f"{stem}ForCausalLM" for stem in dict.fromkeys(STEMS.values())]
    if found is not None:
        why = f"is of another family than model_type={model_type!r}, whose class is {wanted}ForCausalLM"
    else:
        near = get_close_matches(declared, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; model_type={model_type!r} has {wanted}ForCausalLM"
        why = f"is no architecture we can read{hint}"
    return Fault(
        "model-config", "architectures", f"config.json: architectures names {declared!r}, which {why}", value=declared
    )
