"""What the Mamba-2 hybrids share: the keys of their mixer, and its weights."""

from staticfire.engine.config.families.base import Reader
from staticfire.engine.config.families.states import Mamba2State


def mamba2_state(reader: Reader) -> Mamba2State:
    """Read the `mamba_*` keys that Bamba, Granite-4 and Falcon-H1 share.

    The inner width is `mamba_d_ssm` where given, else `mamba_expand * hidden_size`; it must be heads times head width.
    """
    hidden, heads = reader.size("hidden_size"), reader.size("mamba_n_heads", 128)
    inner = reader.size("mamba_d_ssm", reader.size("mamba_expand", 2) * hidden)
    width = reader.hf.get("mamba_d_head", "auto")
    head_dim = max(1, inner // heads) if width is None or width == "auto" else reader.size("mamba_d_head")
    if heads * head_dim != inner:
        reader.fault(
            "mamba_n_heads",
            f"config.json: mamba_n_heads={heads} times mamba_d_head={head_dim} is {heads * head_dim}, "
            f"but the mixer is {inner} wide",
            heads,
        )
    return checked(
        reader,
        Mamba2State(
            intermediate=inner,
            groups=reader.size("mamba_n_groups", 1),
            heads=heads,
            head_dim=head_dim,
            d_state=reader.size("mamba_d_state", 256),
            d_conv=reader.size("mamba_d_conv", 4),
        ),
        "mamba_n_groups",
    )


def checked(reader: Reader, state: Mamba2State, key: str) -> Mamba2State:
    """Refuse a number of groups that does not divide the heads."""
    if state.heads % state.groups:
        message = f"config.json: {key}={state.groups} does not divide {state.heads} Mamba-2 heads"
        reader.fault(key, message, state.groups)
    return state


def mamba2_parameters(hidden: int, state: Mamba2State) -> int:
    """Weights of one Mamba-2 mixer: in and out projections, conv, gate norm, A, D and dt bias."""
    inner, grouped = state.intermediate, 2 * state.groups * state.d_state
    projections = hidden * (2 * inner + grouped + state.heads) + inner * hidden
    return projections + (inner + grouped) * (state.d_conv + 1) + inner + 3 * state.heads
