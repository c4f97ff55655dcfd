"""The start-up benchmark: its arithmetic, and that it never reports the time of a failure."""

import bench_cli
import bench_common
import pytest


def test_the_table_gives_medians_and_ratios():
    samples = {
        bench_cli.BASELINE: [0.010, 0.030, 0.020],
        "slow": [0.100, 0.050, 0.900],
    }
    assert bench_cli.table(samples).splitlines()[2:] == [
        "| `python -c pass` | 20 | 10 | 1.0 |",
        "| `slow` | 100 | 50 | 5.0 |",
    ]


@pytest.mark.parametrize(
    ("load", "cores", "expected"), [(0.0, 2, False), (1.0, 2, False), (1.1, 2, True), (3.0, 8, False)]
)
def test_a_busy_machine_is_recognised(load, cores, expected):
    assert bench_common.busy(load, cores) is expected


def test_a_busy_machine_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("os.getloadavg", lambda: (1e6, 0.0, 0.0))
    monkeypatch.setattr("sys.argv", ["bench_cli.py"])
    monkeypatch.setattr(bench_cli, "measure", lambda _: pytest.fail("measured on a busy machine"))
    assert bench_cli.main() == 2
    assert "busy" in capsys.readouterr().err


def test_every_command_is_measured_once_a_round_in_turn(monkeypatch):
    order = []

    def seconds(arguments, folder):
        order.append(tuple(arguments))
        return float(len(order))

    monkeypatch.setattr(bench_cli, "seconds", seconds)
    samples = bench_cli.measure(rounds=2)
    commands = [tuple(arguments) for arguments in bench_cli.COMMANDS.values()]
    assert order == commands * 3
    assert samples[bench_cli.BASELINE] == [len(commands) + 1, 2 * len(commands) + 1]  # the first round only warms up


def test_a_command_that_fails_is_an_error_and_no_number(tmp_path):
    with pytest.raises(RuntimeError, match="ended with 3"):
        bench_cli.seconds(["-c", "raise SystemExit(3)"], str(tmp_path))


def test_over_the_limit_is_reported(monkeypatch, capsys):
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setattr("sys.argv", ["bench_cli.py", "--rounds", "1"])
    monkeypatch.setattr(bench_cli, "measure", lambda _: {bench_cli.BASELINE: [0.01], "staticfire --help": [0.3]})
    assert bench_cli.main() == 1
    assert "over 0.25 s: staticfire --help" in capsys.readouterr().out
