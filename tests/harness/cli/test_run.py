import importlib.util
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from run_cli import FAKES, Toy, interrupt, with_fakes
from staticfire.harness.cli import main
from staticfire.harness.models.make import ensure

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "schemas" / "results.json").read_text())


@pytest.fixture
def toy(tmp_path):
    return Toy(tmp_path)


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_a_cache_that_cannot_be_written_is_told_before_any_cell(toy, tmp_path, where):
    (tmp_path / "file").touch()
    code, out, errors = toy.run("--cache", str(tmp_path / where))
    assert (code, out) == (2, "")
    assert f"the cache {tmp_path / where}: cannot write there" in errors
    assert "--cache" in errors
    assert toy.starts() == []
    assert not toy.out.exists()


def test_a_journal_that_cannot_be_read(toy):
    (toy.out / "journal.jsonl").mkdir(parents=True)
    code, out, errors = toy.run("--resume")
    assert (code, out) == (2, "")
    assert "journal.jsonl: cannot be read: Is a directory; run without --resume" in errors


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_a_full_standard_output_is_no_usage_fault(toy):
    with Path("/dev/full").open("w") as full:
        toy.stdout = full
        code, _, errors = toy.run()
    assert (code, errors.count("\n")) == (3, 1)
    assert "standard output cannot be written: No space left on device" in errors


@pytest.mark.skipif(sys.platform != "linux", reason="macOS has no such names")
def test_a_matrix_whose_name_is_no_text(toy):
    toy.file = toy.file.rename(toy.folder / os.fsdecode(b"m\xff.toml"))
    code, _, errors = toy.run(seed2="fail")
    assert (code, errors) == (1, "")
    assert (
        json.loads((toy.out / "results.json").read_text())["matrix"]["file"]
        == f"{toy.folder}/m\N{REPLACEMENT CHARACTER}.toml"
    )


def test_a_good_run_exits_0_and_ends_in_a_summary(toy):
    code, out, errors = toy.run("-j", "2", seed5="refuse:SF101")
    assert (code, errors) == (0, "")
    assert re.fullmatch(
        rf"6 cells: 5 passed, 1 refused as expected in \d+\.\d+s - report in {toy.out}/", out.splitlines()[-1]
    )
    assert toy.results() == {**dict.fromkeys(toy.ids, "passed"), toy.ids[5]: "refused as expected"}
    assert sorted(path.name for path in toy.out.iterdir()) == [
        ".lock",
        "index.html",
        "journal.jsonl",
        "junit.xml",
        "results.json",
    ]


def test_what_it_writes_keeps_the_published_schema(toy):
    toy.run(seed1="fail", seed2="leave:3", seed3="odd")
    jsonschema.validate(json.loads((toy.out / "results.json").read_text()), SCHEMA)


@pytest.mark.parametrize(
    ("action", "verdict"),
    [("fail", "failed"), ("leave:3", "error"), ("kill:SIGKILL", "error"), ("throw:value", "error")],
)
def test_one_finding_exits_1_and_is_shown_with_its_rerun_command(toy, action, verdict):
    code, out, errors = toy.run(seed2=action)
    assert (code, errors) == (1, "")
    assert out.splitlines()[:2] == ["6 cells to run", toy.ids[2]]
    assert f"  {verdict}" in out.splitlines()[2]
    assert f"  rerun: staticfire run {toy.file} --cell {toy.ids[2]}\n" in out
    assert f"5 passed, 1 {verdict} in" in out.splitlines()[-1]


def test_the_rerun_command_runs_just_that_cell(toy):
    code, out, _ = toy.run("-j", "1", "--cell", toy.ids[4], "--cell", toy.ids[1])
    assert code == 0
    assert out.splitlines()[-1].startswith("2 cells: 2 passed in")
    assert [name for name, _ in toy.starts()] == [toy.ids[1], toy.ids[4]]


def test_select_keeps_cells_by_value(toy):
    toy.run("--select", "seed=3", "--select", "seed=0")
    assert sorted(name for name, _ in toy.starts()) == [toy.ids[0], toy.ids[3]]


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        (["--cell", "lama-tiny-seed-3"], ["--cell lama-tiny-seed-3: no such cell.", "Did you mean 'llama-tiny-seed-"]),
        (["--select", "sed=1"], ["no axis named 'sed'", "Did you mean 'seed'"]),
        (["--select", "seed=77"], ["'77' is no value of axis 'seed'"]),
        (["--select", "seed"], ["--select seed: must be axis=value"]),
        (["-j", "0"], ["'-j'", "0 is not in the range x>=1"]),
        (["--timeout", "0"], ["'--timeout'"]),
        (["--timeout", "nan"], ["'--timeout'", "nan is no number of seconds"]),
        (["--format", "pdf"], ["'--format'", "'json', 'junit', 'html'"]),
        (["--selekt", "seed=1"], ["No such option", "--select"]),
    ],
)
def test_bad_usage_exits_2_and_runs_nothing(toy, options, messages):
    code, out, errors = toy.run(*options)
    assert (code, out) == (2, "")
    for message in messages:
        assert message in errors
    assert toy.starts() == []
    assert not toy.out.exists()


def test_an_unknown_matrix_names_the_nearest(capsys):
    assert main(["run", "hybird"]) == 2
    assert "hybrid" in capsys.readouterr().err


def test_an_unwritable_folder_is_told_before_anything_runs(toy):
    toy.out.write_text("a file")
    code, out, errors = toy.run()
    assert (code, out, toy.starts()) == (2, "", [])
    assert f"--out {toy.out}: cannot write there" in errors
    assert toy.out.read_text() == "a file"


@pytest.mark.parametrize("option", ["--out", "--cache"])
def test_an_empty_path_is_not_the_current_folder(toy, option):
    code, out, errors = toy.run(option, "")
    assert (code, out, toy.starts()) == (2, "", [])
    assert f"'{option}': the path is empty" in errors


def test_without_the_engine_it_says_what_to_install(toy, monkeypatch, capsys):
    found = importlib.util.find_spec
    bare = {"torch", "transformers"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in bare else found(name))
    assert main(["run", str(toy.file), "--out", str(toy.out)]) == 2
    assert "running cells needs torch and transformers: pip install 'staticfire[engine]'" in capsys.readouterr().err
    assert not toy.out.exists()


def test_only_the_formats_asked_for_are_written(toy):
    toy.run("--format", "junit")
    assert (toy.out / "junit.xml").exists()
    assert not (toy.out / "results.json").exists()


def test_fail_fast_stops_and_resume_goes_on(toy):
    code, out, _ = toy.run("--fail-fast", "-j", "1", seed1="fail")
    assert code == 1
    assert out.splitlines()[-1].startswith("2 of 6 cells: 1 passed, 1 failed in")
    assert json.loads((toy.out / "results.json").read_text())["complete"] is False
    code, out, _ = toy.run("--resume", "-j", "1")
    assert code == 1
    assert out.splitlines()[0] == "resumed: 2 cells have a verdict (1 findings), 4 to go"
    assert [name for name, _ in toy.starts()] == toy.ids


def test_a_second_run_keeps_the_first(toy):
    toy.run(seed0="fail")
    first = (toy.out / "results.json").read_bytes()
    code, out, _ = toy.run()
    assert code == 0
    assert out.splitlines()[0] == f"the earlier run is kept in {toy.out}/earlier/0001"
    assert (toy.out / "earlier" / "0001" / "results.json").read_bytes() == first


def test_an_edited_matrix_is_not_resumed(toy):
    toy.run("--cell", toy.ids[0])
    toy.file.write_text(toy.file.read_text().replace("4, 5", "4"))
    code, out, errors = toy.run("--resume")
    assert (code, out) == (2, "")
    assert "belongs to another matrix or version (matrix digest: " in errors
    assert "run without --resume to start afresh (the journal is kept aside)" in errors


def test_two_runs_in_one_folder_are_refused(toy):
    first = toy.start(seed0="wait:30", seed1="wait:30")
    toy.wait_for_starts(1)
    code, _, errors = toy.run()
    assert code == 2
    assert f"another run is writing there (process {first.pid}); wait for it, or use --out" in errors
    interrupt(first)
    first.communicate(timeout=60)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_stopping_signal_leaves_the_journal_and_no_process(toy, number, code):
    run = toy.start("-j", "2", default="wait:60", seed0="pass", seed1="pass")
    toy.wait_for_starts(4)
    interrupt(run, number)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == code
    assert f"Stopped by {number.name}: 4 cells without a verdict; go on with --resume." in errors
    assert "Traceback" not in errors
    assert sorted(toy.journaled()) == [(toy.ids[0], "passed"), (toy.ids[1], "passed")]
    assert toy.no_worker_left()
    assert not (toy.out / "results.json").exists()
    assert toy.run("--resume")[0] == 0
    assert toy.results() == dict.fromkeys(toy.ids, "passed")


# a worker that holds the interpreter sees no end of input; Linux kills it with its parent
@pytest.mark.parametrize("busy", ["wait:120", *(["hold"] if sys.platform == "linux" else [])])
def test_workers_do_not_outlive_a_killed_run(toy, busy):
    run = toy.start("-j", "2", default=busy)
    toy.wait_for_starts(2)
    run.kill()
    run.communicate(timeout=60)
    assert toy.no_worker_left()


def test_a_killed_worker_is_named_and_replaced(toy):
    run = toy.start("-j", "1", seed2="wait:60")
    toy.wait_for_starts(3)
    os.kill(toy.starts()[-1][1], signal.SIGKILL)
    out, errors = run.communicate(timeout=60)
    assert (run.returncode, errors) == (1, "")
    assert f"{toy.ids[2]}\n  error: the worker died: killed by SIGKILL\n" in out
    assert toy.results()[toy.ids[2]] == "error"
    assert [name for name, _ in toy.starts()] == toy.ids
    assert len({pid for _, pid in toy.starts()}) == 2


def test_a_hang_ends_at_the_limit(toy):
    code, out, _ = toy.run("--timeout", "1", seed0="hold")
    assert code == 1
    assert "error: no verdict within 1 s (--timeout)" in out
    assert toy.results()[toy.ids[1]] == "passed"


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ("no_such_module:do", "--job no_such_module:do: there is no module no_such_module"),
        ("fake_jobs.deeper:do", "there is no module fake_jobs.deeper"),
        ("fake_jobs", "--job fake_jobs: must be module:function"),
        ("fake_jobs:", "must be module:function"),
    ],
)
def test_a_job_that_cannot_be_found_exits_2(toy, job, message):
    code, _, errors = toy.run("--job", job)
    assert code == 2
    assert message in errors
    assert not toy.out.exists()


def test_workers_that_cannot_start_exit_3(toy):
    code, _, errors = toy.run("--job", "broken_job:do")
    assert code == 3
    assert "Error: the workers cannot start: RuntimeError: this module cannot be imported" in errors


def test_no_space_for_a_report_exits_3_and_loses_nothing(toy, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    for name, value in toy.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(FAKES)
    with monkeypatch.context() as patch:
        patch.setattr("staticfire.harness.report.write.write_whole", full)
        assert main(toy.arguments()) == 3
    captured = capsys.readouterr()
    assert f"cannot write the report {toy.out}/results.json: No space left on device" in captured.err
    assert f"The verdicts are in {toy.out}/journal.jsonl: when that is mended, --resume" in captured.err
    assert re.fullmatch(r"6 cells: 6 passed in \d+\.\ds", captured.out.splitlines()[-1])
    assert len(toy.journaled()) == 6
    assert main(toy.arguments("--resume")) == 0
    assert len(toy.starts()) == 6, "no cell ran twice"
    assert toy.results() == dict.fromkeys(toy.ids, "passed")


def test_a_disk_that_really_refuses_keeps_every_verdict(tmp_path):
    toy = Toy(tmp_path, 60)
    # the journal of 60 cells takes less than 9,000 bytes, their results.json more
    limit = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)); "
    limit += "os.execv(sys.executable, [sys.executable, '-m', 'staticfire', *sys.argv[1:]])"
    command = [sys.executable, "-c", limit, *toy.arguments()]
    done = subprocess.run(command, env=toy.environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[:8]) == (3, "60 cells")
    assert "results.json: File too large" in done.stderr
    assert [path.name for path in toy.out.iterdir() if path.suffix == ".json"] == []
    assert toy.run("--resume")[0] == 0
    assert len(toy.results()) == len(toy.starts()) == 60


def test_on_a_terminal_progress_is_live(toy):
    terminal, child = pty.openpty()
    toy.stdout = child
    run = toy.start("-j", "1", default="wait:0.5")
    os.close(child)
    shown = b""
    try:
        while data := os.read(terminal, 65536):
            shown += data
    except OSError:  # the other end is closed: Linux says so by EIO
        pass
    run.communicate(timeout=60)
    os.close(terminal)
    text = shown.decode()
    assert run.returncode == 0
    assert f"worker 1: {toy.ids[0]}" in text
    assert re.search(r"\d/6 done, no findings, [\d.]+ cells/s, about [\d.]+s left", text)
    assert text.rstrip().endswith(f"report in {toy.out}/")


def test_quiet_prints_the_summary_alone(toy):
    _, out, _ = toy.run("--quiet")
    _, again, _ = toy.run("-q")
    assert len(out.splitlines()) == len(again.splitlines()) == 1


def test_help_tells_the_exit_codes_and_imports_nothing_heavy():
    code = "import sys; from staticfire.harness.cli import main; main(['run', '--help']); "
    code += "sys.exit(int(bool({'torch', 'transformers', 'numpy'} & sys.modules.keys())))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    for word in ("130", "--resume", "--cell", "--select", "--fail-fast", "staticfire-report"):
        assert word in done.stdout


def test_the_parent_never_imports_torch(toy):
    code = "import sys; from staticfire.harness.cli import main; main(sys.argv[1:]); "
    code += "sys.exit(int(bool({'torch', 'transformers', 'numpy'} & sys.modules.keys())))"
    done = subprocess.run([sys.executable, "-c", code, *toy.arguments()], env=toy.environment(), check=False)
    assert done.returncode == 0
    assert FAKES.is_dir()


REAL = """
[matrix]
name = "real"
description = "One model, one rule."

[fixed]
max_model_len = 512
max_num_seqs = 8
mamba_cache_mode = "align"
enable_prefix_caching = true
max_num_batched_tokens = 1024

[axes]
model = ["jamba-tiny"]
dtype = ["float32"]
enable_chunked_prefill = [true, false]

[[constraint]]
when = { enable_chunked_prefill = false }
reason = "mode align needs chunked prefill"
kind = "unsupported"
rule = "SF101"
"""


@pytest.fixture
def real(tmp_path):
    matrix = tmp_path / "real.toml"
    matrix.write_text(REAL)
    return matrix


@pytest.mark.engine
@pytest.mark.slow
def test_the_real_engine_passes_and_refuses_as_the_matrix_says(real, tmp_path, cache_dir, repo_root, monkeypatch):
    # here the bare folder `kernels` must not be found by transformers
    monkeypatch.chdir(repo_root)
    out = tmp_path / "out"
    code = main(["run", str(real), "-j", "2", "--out", str(out), "--cache", str(cache_dir)])
    document = json.loads((out / "results.json").read_text())
    jsonschema.validate(document, SCHEMA)
    assert code == 0, document
    assert sorted(cell["verdict"] for cell in document["cells"]) == ["passed", "refused as expected"]
    assert {cell.get("rule") for cell in document["cells"]} == {None, "SF101"}


@pytest.mark.engine
@pytest.mark.slow
def test_a_wrong_sign_in_the_engine_is_a_failure_that_reads_well(real, tmp_path, cache_dir, monkeypatch, capsys):
    # answers of the broken engine must not be kept for the others
    cache = tmp_path / "cache"
    cache.mkdir()
    ensure("jamba-tiny", cache_dir)
    (cache / "checkpoints").symlink_to(cache_dir / "checkpoints")
    monkeypatch.setenv("PYTHONPATH", with_fakes())
    monkeypatch.syspath_prepend(FAKES)
    options = ["--job", "sabotaged_judge:judge_cell", "--cache", str(cache), "--out", str(tmp_path / "out")]
    assert main(["run", str(real), *options, "--select", "enable_chunked_prefill=true"]) == 1
    out = capsys.readouterr().out
    assert re.search(r"failed: wrong against transformers: run cold, prompt \d+, position \d+: ", out)
    assert re.search(r"expected token \d+ '.*', observed \d+ '.*'", out)
    assert re.search(r"position +token +expected +observed\n +\d+ +\d+ '.*' +-\d+\.\d{6} +-\d+\.\d{6}\n", out)
    assert re.search(rf"rerun: staticfire run {re.escape(str(real))} --cell jamba-tiny-\S+\n", out)


def test_cells_run_on_the_kernels_that_are_asked_for(toy):
    code, _, errors = toy.run("--kernel-backend", "triton", default="variable:TRITON_INTERPRET")
    assert (code, errors) == (0, "")
    cells = json.loads((toy.out / "results.json").read_text())["cells"]
    assert [cell["detail"]["value"] for cell in cells] == ["1"] * 6
    code, _, errors = toy.run("--resume", "--kernel-backend", "torch")
    assert code == 2
    assert "--kernel-backend: triton, now torch" in errors


def test_a_finding_is_rerun_on_the_same_kernels(toy):
    code, out, _ = toy.run("--kernel-backend", "torch", seed2="fail")
    assert code == 1
    assert f"--cell {toy.ids[2]} --kernel-backend torch" in out


def test_a_journal_that_is_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    toy = Toy(tmp_path, 1)
    toy.out.mkdir()
    os.mkfifo(toy.out / "journal.jsonl")
    process = toy.start("--resume")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "journal.jsonl: cannot be read: is no regular file" in errors
