"""`python -m staticfire.kernels.bench [OP ...]`: the table."""

import argparse
import platform
import sys
from collections.abc import Callable, Sequence

import torch

from staticfire.kernels.bench import elementwise, products, recurrent
from staticfire.kernels.bench.case import Case
from staticfire.kernels.bench.clock import gpu_microseconds, reached
from staticfire.kernels.bench.measure import achieved, on_cpu, on_gpu, on_paper
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
    """Print the table; return 0, or 2 for an op or device that does not exist."""
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
    wanted = asked.op or list(OPS)
    with torch.inference_mode():
        if present and asked.device != "cpu":
            _gpu_table(wanted, torch.device("cuda", torch.cuda.current_device()), _say)
        else:
            _cpu_table(wanted, _say)
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _cpu_table(wanted: Sequence[str], say: Callable[[str], None]) -> None:
    torch.set_num_threads(1)
    say(NO_GPU)
    say(f"{'op':24}{'shape':40}{'torch us':>10}{'reference us':>14}{'ratio':>8}")
    for case in cases(tiny()):
        if case.op in wanted:
            took = on_cpu(case)
            ratio = took["reference"] / took["torch"]
            say(f"{case.op:24}{case.shape:40}{took['torch']:10.1f}{took['reference']:14.0f}{ratio:8.0f}")


def _gpu_table(wanted: Sequence[str], device: torch.device, say: Callable[[str], None]) -> None:
    import triton  # noqa: PLC0415 -- only where kernels are launched

    def clock(call: Callable[[], object]) -> float:
        return gpu_microseconds(call, device)

    name, scale = torch.cuda.get_device_name(device), real(device)
    sheet, seen = ceilings_of(name), reached(device, clock)
    say(f"{name}; torch {torch.__version__}, triton {triton.__version__}, Python {platform.python_version()}")
    rates = ", ".join(f"{unit} {rate / 1e12:.0f} Top/s" for unit, rate in seen.products.items())
    say(f"measured now: copy {seen.bandwidth / 1e9:.0f} GB/s, products {rates}")
    say("microseconds by device events, L2 flushed, the median; floor: by the data sheet")
    say(f"{'op':24}{'shape':40}{'triton':>9}{'torch':>9}{'floor':>9}  achieved by triton; others")
    for case in cases(scale):
        if case.op in wanted:
            took = on_gpu(case, scale.dtype, clock)
            others = [
                f"; {other} {value if isinstance(value, str) else f'{value:.1f}'}"
                for other, value in took.rivals.items()
            ]
            say(
                f"{case.op:24}{case.shape:40}{took.triton:9.1f}{took.torch:9.1f}{on_paper(case.cost, sheet):>9}  "
                f"{achieved(case.cost, took.triton, seen)}{''.join(others)}"
            )


def ceilings_of(name: str) -> Ceilings | None:
    """Find the data sheet of a device by what its driver calls it."""
    words = name.replace("-", " ").split()
    return next((one for one in CEILINGS.values() if one.marketing in words), None)


if __name__ == "__main__":
    sys.exit(main())
