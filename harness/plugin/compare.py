"""The comparisons of vLLM's test suite, by its names: equal outputs, and outputs that part only where it is close."""

import warnings
from collections.abc import Sequence
from typing import Any


def check_outputs_equal(
    *,
    outputs_0_lst: Sequence[tuple[list[int], str]],
    outputs_1_lst: Sequence[tuple[list[int], str]],
    name_0: str,
    name_1: str,
) -> None:
    """Both sides must have the same texts and the same tokens.

    Raises:
        AssertionError: The first prompt that differs, with the position.
    """
    _same_number(outputs_0_lst, outputs_1_lst, name_0, name_1)
    for index, ((ids_0, text_0), (ids_1, text_1)) in enumerate(zip(outputs_0_lst, outputs_1_lst, strict=True)):
        told = f"prompt {index}:\n{name_0}: {text_0!r}\n{name_1}: {text_1!r}"
        if list(ids_0) != list(ids_1):
            at = _first_difference(ids_0, ids_1)
            raise AssertionError(f"{told}\ntokens part at {at}: {list(ids_0[at : at + 4])}, {list(ids_1[at : at + 4])}")
        if text_0 != text_1:
            raise AssertionError(f"{told}\nequal tokens, but other text")


def check_logprobs_close(
    *,
    outputs_0_lst: Sequence[tuple[Any, ...]],
    outputs_1_lst: Sequence[tuple[Any, ...]],
    name_0: str,
    name_1: str,
    num_outputs_0_skip_tokens: int = 0,
    warn_on_mismatch: bool = True,
    always_check_logprobs: bool = False,
) -> None:
    """Where the tokens first part, each side's token must be among the other's candidates; beyond it nothing is said.

    Args:
        outputs_0_lst: One `(tokens, text, logprobs)` a prompt, with the prompt's logprobs as a fourth where asked for.
        outputs_1_lst: The same of the other side.
        name_0: Its name in messages.
        name_1: Its name in messages.
        num_outputs_0_skip_tokens: Tokens of the first side to pass over.
        warn_on_mismatch: Warn where the tokens part though each is the other's candidate.
        always_check_logprobs: Look at the candidates of equal tokens too.

    Raises:
        AssertionError: Outputs that are not close, or not comparable.
        ValueError: Tuples of another length, or a negative number to skip.
    """
    if num_outputs_0_skip_tokens < 0:
        raise ValueError(f"num_outputs_0_skip_tokens={num_outputs_0_skip_tokens}: must be at least 0")
    _same_number(outputs_0_lst, outputs_1_lst, name_0, name_1)
    for index, (one, other) in enumerate(zip(outputs_0_lst, outputs_1_lst, strict=True)):
        for side, name in ((one, name_0), (other, name_1)):
            if len(side) not in (3, 4):
                raise ValueError(f"prompt {index} of {name}: 3 or 4 values belong in a tuple, there are {len(side)}")
        if len(one) != len(other):
            raise AssertionError(f"prompt {index}: {len(one)} values from {name_0}, {len(other)} from {name_1}")
        if len(one) == 4:
            _prompts_agree(one[3], other[3], f"prompt {index}, logprobs of the prompt: {name_0} and {name_1}")
        skip = num_outputs_0_skip_tokens
        shortened = (one[0][skip:], one[1], None if one[2] is None else one[2][skip:])
        parted = _continuations_agree(shortened, other, (name_0, name_1), f"prompt {index}", always_check_logprobs)
        if warn_on_mismatch and (parted is not None or one[1] != other[1]):
            told = parted or f"prompt {index}: equal tokens, but other text"
            warnings.warn(f"{told}\n{name_0}: {one[1]!r}\n{name_1}: {other[1]!r}", stacklevel=2)


def _continuations_agree(
    one: tuple[Any, ...], other: tuple[Any, ...], names: tuple[str, str], where: str, always: bool
) -> str | None:
    """Compare up to the first token that differs, and say where that is."""
    for at, (token, another) in enumerate(zip(one[0], other[0], strict=False)):
        if token == another and not always:
            continue
        sides = ((names[0], one, another), (names[1], other, token))
        for name, side, wanted in sides:
            candidates = None if side[2] is None else side[2][at]
            told = f"{where}, token {at}: {names[0]} has {token}, {names[1]} has {another}"
            if candidates is None:
                raise AssertionError(f"{told}; {name} has no logprobs to judge it by")
            if wanted not in candidates:
                raise AssertionError(f"{told}; {wanted} is not among the candidates of {name}: {sorted(candidates)}")
        if token != another:
            return f"{where}: the tokens part at {at} ({token}, {another}), each a candidate of the other"
    return None


def _prompts_agree(one: Any, other: Any, where: str) -> None:
    if (one is None) != (other is None):
        raise AssertionError(f"{where}: only one side has them")
    for at, (left, right) in enumerate(zip(one or (), other or (), strict=False)):
        if (left is None) != (right is None) or (left is not None and set(left) != set(right)):
            raise AssertionError(f"{where} differ at {at}: {left}, {right}")


def _same_number(one: Sequence[Any], other: Sequence[Any], name_0: str, name_1: str) -> None:
    if len(one) != len(other):
        raise AssertionError(f"{len(one)} outputs of {name_0}, {len(other)} of {name_1}")


def _first_difference(one: Sequence[int], other: Sequence[int]) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
