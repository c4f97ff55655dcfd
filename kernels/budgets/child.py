"""The process that compiles: a job a line on standard input, its outcome a line on standard output.

Run as `python -m staticfire.kernels.budgets.child` by `compile`, which settles its environment: the interpreter off,
floating-point fusion pinned. It ends with its standard input.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from staticfire.kernels.budgets.read import read
from staticfire.kernels.budgets.resources import Resources
from staticfire.kernels.targets import TARGETS

CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"


def compiled(job: Mapping[str, Any]) -> Resources:
    """Compile one job.

    Args:
        job: As `compile.job` makes it.

    Returns:
        What it takes.

    Raises:
        ValueError: The arguments named are not those of the kernel.
        Exception: Whatever Triton raises for a kernel that it cannot compile.
    """
    module, _, name = job["kernel"].partition(":")
    kernel = getattr(import_module(module), name)
    signature, constants = job["signature"], job["constexprs"]
    given = sorted([*signature, *constants])
    if given != sorted(kernel.arg_names):
        raise ValueError(f"the variant gives the arguments {given}, the kernel has {sorted(kernel.arg_names)}")
    target = TARGETS[job["target"]]
    source = ASTSource(
        kernel,
        {name: signature[name].partition(":")[0] if name in signature else "constexpr" for name in kernel.arg_names},
        {name: getattr(tl, value["dtype"]) if isinstance(value, dict) else value for name, value in constants.items()},
        {
            (kernel.arg_names.index(name),): [["tt.divisibility", 16]]
            for name, kind in signature.items()
            if kind.endswith(":16")
        },
    )
    made = triton.compile(
        source,
        target=GPUTarget(target.backend, target.arch, target.warp_size),
        options={"num_warps": job["num_warps"], "num_stages": job["num_stages"]},
    )
    return read(made.asm, made.metadata.shared, CUOBJDUMP)


def main() -> None:
    """Answer every line; whatever a compiler prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = json.loads(line)
        # Unhandled, the signal ends the process even while it is inside the compiler.
        signal.setitimer(signal.ITIMER_REAL, job["timeout"])
        try:
            outcome: dict[str, Any] = {"resources": compiled(job).as_json()}
        except Exception as error:  # noqa: BLE001 -- a kernel that does not compile is an answer
            outcome = {"error": f"{type(error).__name__}: {error}".strip()}
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(json.dumps(outcome) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
