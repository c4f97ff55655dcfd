"""`python -m staticfire.kernels.bench [OP ...]`: the table."""

import argparse
import platform
import sys
from collections.abc import Callable, Sequence
from functools import partial

import torch

from staticfire.kernels.bench import elementwise, products, recurrent
from staticfire.kernels.bench.case import Case
from staticfire.kernels.bench.clock import gpu_microseconds, reached
from staticfire.kernels.bench.measure import achieved, on_cpu, on_gpu, on_paper
from staticfire.kernels.bench.output import UnwritableError, say
from staticfire.kernels.bench.scale import Scale, real, tiny
from staticfire.kernels.names import did_you_mean
from staticfire.kernels.registry import OPS
from staticfire.kernels.roofline import CEILINGS, Ceilings

NO_GPU = (
    "No GPU: PyTorch alone is timed, on the CPU, in microseconds of processor time of one thread, the least of several "
    "repeats. It says nothing about a GPU, and Triton's interpreter is not timed."
)


def cases(scale: Scale) -> list[Case]:
    """Make every line of the table, the inputs from one seed."""
    torch.manual_seed(0)
    return [*elementwise.cases(scale), *recurrent.cases(scale), *products.cases(scale)]


def main(argv: list[str] | None = None) -> int:
    """Print the table.

    Args:
        argv: Arguments after the program's name; those of the process when None.

    Returns:
        0; 1 where an op is wrong or fails, which its row tells; 2 where the table cannot be written; 130 interrupted.

    Raises:
        SystemExit: 2, an op or device that does not exist.
    """
    parser = argparse.ArgumentParser(prog="python -m staticfire.kernels.bench", description="Time every op.")
    parser.add_argument("op", nargs="*", help="only these: " + ", ".join(sorted(OPS)))
    parser.add_argument("--device", choices=("cpu", "gpu"), help="what to time on [default: a GPU if there is one]")
    asked = parser.parse_args(argv)
    for name in asked.op:
        if name not in OPS:
            parser.error(f"unknown op {name!r}; known: {', '.join(sorted(OPS))}{did_you_mean(name, OPS)}")
    present = torch.cuda.is_available()
    if asked.device == "gpu" and not present:
        parser.error("PyTorch sees no GPU")
    wanted, rows = asked.op or list(OPS), Rows(say)
    try:
        with torch.inference_mode():
            if present and asked.device != "cpu":
                _gpu_table(wanted, torch.device("cuda", torch.cuda.current_device()), rows)
            else:
                _cpu_table(wanted, rows)
    except UnwritableError as error:
        if str(error):
            parser.error(str(error))
    except KeyboardInterrupt:
        return 130
    return 1 if rows.wrong else 0


class Rows:
    """The table as it is printed.

    Attributes:
        say: Prints a line.
        wrong: Ops without numbers.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.wrong = 0

    def add(self, case: Case, numbers: Callable[[], str]) -> None:
        """Print the row of a case; one that is wrong or fails is told there, and the others go on."""
        try:
            told = numbers()
        except AssertionError as error:
            told = f"  WRONG: {error}"
            self.wrong += 1
        except Exception as error:  # noqa: BLE001 -- whatever is wrong with it, the numbers of the others are wanted
            told = f"  FAILED: {type(error).__name__}: {' '.join(str(error).split())}"
            self.wrong += 1
        self.say(f"{case.op:24}{case.shape:40}{told}")


def _cpu_table(wanted: Sequence[str], rows: Rows) -> None:
    torch.set_num_threads(1)
    rows.say(NO_GPU)
    rows.say(f"{'op':24}{'shape':40}{'torch us':>10}{'reference us':>14}{'ratio':>8}")

    def numbers(case: Case) -> str:
        took = on_cpu(case)
        return f"{took['torch']:10.1f}{took['reference']:14.0f}{took['reference'] / took['torch']:8.0f}"

    for case in cases(tiny()):
        if case.op in wanted:
            rows.add(case, partial(numbers, case))


def _gpu_table(wanted: Sequence[str], device: torch.device, rows: Rows) -> None:
    import triton  # noqa: PLC0415 -- only where kernels are launched

    def clock(call: Callable[[], object]) -> float:
        return gpu_microseconds(call, device)

    name, scale = torch.cuda.get_device_name(device), real(device)
    sheet, seen = ceilings_of(name), reached(device, clock)
    rows.say(f"{name}; torch {torch.__version__}, triton {triton.__version__}, Python {platform.python_version()}")
    rates = ", ".join(f"{unit} {rate / 1e12:.0f} Top/s" for unit, rate in seen.products.items())
    rows.say(f"measured now: copy {seen.bandwidth / 1e9:.0f} GB/s, products {rates}")
    rows.say("microseconds by device events, L2 flushed, the median; floor: by the data sheet")
    rows.say(f"{'op':24}{'shape':40}{'triton':>9}{'torch':>9}{'floor':>9}  achieved by triton; others")

    def numbers(case: Case) -> str:
        took = on_gpu(case, scale.dtype, clock)
        others = [
            f"; {other} {value if isinstance(value, str) else f'{value:.1f}'}" for other, value in took.rivals.items()
        ]
        return (
            f"{took.triton:9.1f}{took.torch:9.1f}{on_paper(case.cost, sheet):>9}  "
            f"{achieved(case.cost, took.triton, seen)}{''.join(others)}"
        )

    for case in cases(scale):
        if case.op in wanted:
            rows.add(case, partial(numbers, case))


def ceilings_of(name: str) -> Ceilings | None:
    """Find the data sheet of a device by what its driver calls it."""
    words = name.replace("-", " ").split()
    return next((one for one in CEILINGS.values() if one.marketing in words), None)


if __name__ == "__main__":
    sys.exit(main())
