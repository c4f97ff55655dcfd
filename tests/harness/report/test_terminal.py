import io
import os
import subprocess
import sys

import pytest
from rich.console import Console

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.report.terminal import RunView, finding_text


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def view_on(file, clock, **options):
    console = Console(file=file, force_terminal=file.isatty(), width=60, highlight=False, legacy_windows=False)
    return RunView(console, "hybrid", clock=clock, **options)


def cell(name):
    return Cell(name, {"model": "m"}, "valid")


def test_plain_output_is_findings_and_a_line_now_and_then(clock, make_result, failure):
    out = io.StringIO()
    with view_on(out, clock) as view:
        view.opened(3, [], None)
        for second in range(21):
            clock.now = float(second)
            view.tick()
        view.finished(make_result("good"))
        view.finished(make_result("bad[bold]", "failed", detail={"failures": [failure]}))
    lines = out.getvalue().splitlines()
    assert lines[:3] == ["3 cells to run", *["0/3 done, no findings, starting"] * 2]
    assert lines[3:5] == [
        "bad[bold]",
        "  failed: wrong against transformers: run cold, prompt 3, position 17: logprobs are off by 0.31",
    ]
    assert lines[-1] == "  rerun: staticfire run hybrid --cell 'bad[bold]'"
    assert "\x1b" not in out.getvalue()
    assert (view.done, view.left) == (2, 1)


def test_what_came_before_is_told(clock, make_result, tmp_path):
    out = io.StringIO()
    view_on(out, clock).opened(2, [make_result("a"), make_result("b", "failed")], None)
    view_on(out, clock).opened(2, [], tmp_path)
    assert out.getvalue().splitlines() == [
        "resumed: 2 cells have a verdict (1 findings), 2 to go",
        f"the earlier run is kept in {tmp_path}",
        "2 cells to run",
    ]


def test_quiet_prints_findings_only(clock, make_result, tmp_path):
    out = Terminal()
    with view_on(out, clock, quiet=True) as view:
        view.opened(3, [], tmp_path)
        clock.now = 60.0
        view.tick()
        view.finished(make_result("good"))
        assert out.getvalue() == ""
        view.finished(make_result("bad", "error"))
    assert "bad" in out.getvalue()


def test_a_terminal_shows_a_bar_and_the_running_cells(clock, make_result):
    out = Terminal()
    with view_on(out, clock) as view:
        view.opened(4, [], None)
        view.started(cell("jamba-16"), 1)
        clock.now = 2.0
        view.finished(make_result("jamba-8"))
        view.tick()
        assert "1/4 done, no findings, 0.5 cells/s, about 6.0s left" in out.getvalue()
        assert "worker 1: jamba-16 2.0s" in out.getvalue()
        view.finished(make_result("jamba-32", "failed"))
    assert "jamba-32" in out.getvalue()
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l"), "the cursor is back"


def test_escapes_of_a_cell_do_not_reach_the_terminal(make_result):
    text = finding_text(make_result("a\x1b[2J", "error", detail={"error": "\x1b]0;x\x07"}), "rerun \x1b")
    assert "\x1b" not in text.plain
    assert "\x07" not in text.plain


def test_long_evidence_is_cut(make_result):
    text = finding_text(make_result("a", "error", detail={"output": "\n".join(map(str, range(100)))}), "r").plain
    assert "61 more lines in the report" in text
    assert len(text.splitlines()) < 50


def test_a_reader_that_leaves_does_not_end_the_run():
    code = (
        "from staticfire.harness.report.terminal import OutputConsole\n"
        "import sys\n"
        "console = OutputConsole()\n"
        "for n in range(2000): console.print('x' * 100)\n"
        "sys.stderr.write('went on')\n"
    )
    read, write = os.pipe()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    os.read(read, 10)
    os.close(read)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, b"went on")
