"""What a model expects to find in its checkpoint. Imports no torch."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor of the saved layout.

    Attributes:
        name: Its name in the checkpoint.
        shape: Its shape there.
        presence: `required`; `tied` may be left out, and must equal `same_as` where it is there; `ignored` may be
            there in old checkpoints and carries nothing (rotary frequencies).
        same_as: For `tied`, the tensor it shares its values with.
        init: How `load_format=dummy` draws it: a `matrix` (gain 3 over the last dimension), `ones`, a `dt_bias`
            (inverse softplus of a step in [1e-3, 1e-1]), an `a_log` (log of 1..d_state).
    """

    name: str
    shape: tuple[int, ...]
    presence: Literal["required", "tied", "ignored"] = "required"
    same_as: str | None = None
    init: Literal["matrix", "ones", "dt_bias", "a_log"] = "matrix"
