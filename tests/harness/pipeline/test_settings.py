"""The settings file: every fault with its line, all at once."""

import datetime as dt

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.pipeline import settings, sources
from toy_pipeline import SETTINGS, TODAY

CHECK = "[[check]]\nkey = 'a'\ncommand = 'x'\n"


def faults(text):
    with pytest.raises(InputError) as refused:
        settings.parse(text, "p.toml", TODAY)
    return str(refused.value).splitlines()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[pipelin]\n", "p.toml:1: pipelin: unknown table. Did you mean 'pipeline'?"),
        ("[pipeline]\nsetpu = 'x'\n", "p.toml:2: pipeline.setpu: unknown key. Did you mean 'setup'?"),
        ("[[check]]\nkey = 'a'\n", "p.toml:1: check[1]: needs command"),
        ("[[check]]\nkey = 'a'\ncomand = 'x'\n", "p.toml:3: check[1].comand: unknown key. Did you mean 'command'?"),
        ("[[check]]\nkey = 'a'\ncommand = 3\n", "p.toml:3: check[1].command: Expected `str`, got `int`"),
        ("[[check]]\nkey = 'a b'\ncommand = 'x'\n", "p.toml:2: check[1].key: 'a b': at most 80"),
        ("[[check]]\nkey = 'a'\ncommand = 'x'\ndevice = 'gpu'\n", "p.toml:4: check[1].device: no device 'gpu'"),
        ("[[check]]\nkey = 'a'\ncommand = 'x'\ndepends_on = ['b']\n", "p.toml:4: check[1].depends_on: no step 'b'"),
        ("[[check]]\nkey = 'a'\ncommand = 'x'\ntimeout_minutes = 0\n", "must be at least 1"),
        ("[[matrix]]\nkey = 'a'\nfile = 'x'\nshards = 0\n", "p.toml:4: matrix[1].shards: must be from 1"),
        ("[[matrix]]\nkey = 'a'\nfile = 'x'\nshards = 2\nshard_minutes = 3\n", "exclude each other"),
        ("[[matrix]]\nkey = 'a'\nfile = 'x'\nshard_minutes = inf\n", "must be above 0"),
        ("[[tests]]\nkey = 'a'\npath = 'x'\ncommand = 'pytest'\n", "must name {files} or {shard}"),
        ("[[tests]]\nkey = 'a'\npath = 'x'\ncommand = 'pytest {files} {x}'\n", "the braces that it may have"),
        ("[[tests]]\nkey = 'a'\npath = 'x'\ncommand = 'pytest {files} {'\n", "the braces that it may have"),
        ("[devices.cpu]\nqueue = 'x'\nconcurrency = 0\n", "p.toml:3: devices.cpu.concurrency"),
        ("[pipeline]\nenv = {A = 1}\n", "p.toml:2: pipeline.env.A: Expected `str`, got `int`"),
        ("[[check]]\nkey = 'summary'\ncommand = 'x'\n", "is the key of a step that every pipeline has"),
        ("[[check]]\nkey = '12345678-1234-1234-1234-123456789abc'\ncommand = 'x'\n", "looks like a UUID"),
        ("[[check]]\nkey = 'a'\ncommand = ' '\n", "p.toml:3: check[1].command: must say something"),
        (
            f"{CHECK}soft_fail = {{ owner = 'x', until = 2030-01-01, reson = 'y' }}\n",
            "p.toml:4: check[1].soft_fail.reson: unk",
        ),
        (f"{CHECK}soft_fail = {{ owner = '', until = 2030-01-01, reason = 'y' }}\n", "needs an owner and a reason"),
        (f"{CHECK}needs = ['src/**']\n", "'src/**': a beginning of paths, no pattern: such as 'src/'"),
        (f"{CHECK}needs = ['!*.md']\n", "a beginning of paths, no pattern: such as 'src/'"),
        (f"{CHECK}needs = ['./src/']\n", "paths begin at the root of the checkout"),
        (f"{CHECK}needs = ['/src/']\n", "paths begin at the root of the checkout"),
        (f"{CHECK}needs = ['src/', '!']\n", "every path begins like that"),
        ("[pipeline]\nrun_all = ['*.toml']\n", "p.toml:2: pipeline.run_all: '*.toml': a beginning of paths"),
        ("[devices.cpu]\n", "p.toml:1: devices.cpu: needs queue"),
        ("check = 3\n", "must be an array of tables"),
        ("x = [\n", "p.toml: not TOML"),
    ],
)
def test_a_fault_is_named_with_its_line(text, said):
    assert any(said in line for line in faults(text)), faults(text)


def test_all_faults_are_told_at_once():
    text = "[pipeline]\nnam = 'x'\n[[check]]\nkey = 'a'\n[[tests]]\nkey = 'b'\npath = 3\n"
    assert len(faults(text)) == 3
    text = "[pipeline]\nnam = 'x'\n[[check]]\nkey = 'a'\n[[check]]\nkey = 'b c'\ncommand = 'x'\ndevice = 'gpu'\n"
    assert [line.split(": ")[1] for line in faults(text)] == [
        "pipeline.nam",
        "check[1]",
        "check[2].key",
        "check[2].device",
    ]


def test_a_key_is_used_once():
    assert "is used 2 times" in faults(SETTINGS + "\n[[check]]\nkey = 'unit'\ncommand = 'x'\n")[0]


def test_an_excuse_ends():
    settings.parse(SETTINGS, "p.toml", dt.date(2027, 1, 1))
    with pytest.raises(InputError, match=r"ended on 2027-01-01; someone decides"):
        settings.parse(SETTINGS, "p.toml", dt.date(2027, 1, 2))


def test_an_excuse_needs_an_owner_an_end_and_a_reason():
    text = "[[check]]\nkey = 'a'\ncommand = 'x'\nsoft_fail = { owner = 'me' }\n"
    assert "until" in faults(text)[0]
    assert "Expected `object | null`" in faults(text.replace("{ owner = 'me' }", "true"))[0]


def test_matrices_and_suites_alone_get_the_usual_checks(tmp_path):
    (tmp_path / "tests").mkdir()
    made = sources.settings(["hybrid", "tests/"], tmp_path, TODAY)
    assert [check.key for check in made.check] == ["check", "matrix-hybrid", "sync", "kernels"]
    assert [work.key for work in (*made.matrix, *made.tests)] == ["hybrid", "tests"]


@pytest.mark.parametrize("names", [["check"], ["sync.py", "sync"]])
def test_keys_of_sources_are_never_used_twice(tmp_path, names):
    for name in names:
        (tmp_path / name).mkdir(exist_ok=True)
    keys = [work.key for work in sources.settings(names, tmp_path, TODAY).work]
    assert len(set(keys)) == len(keys)


def test_settings_stand_alone(tmp_path):
    (tmp_path / "p.toml").write_text(SETTINGS)
    with pytest.raises(InputError, match="name it alone"):
        sources.settings(["p.toml", "hybrid"], tmp_path, TODAY)
    with pytest.raises(InputError, match="name a matrix"):
        sources.settings([], tmp_path, TODAY)
    (tmp_path / ".buildkite").mkdir()
    (tmp_path / sources.DEFAULT).write_text(SETTINGS)
    assert sources.settings([], tmp_path, TODAY).name == "toy"


def test_a_settings_file_and_a_matrix_file_are_told_apart(tmp_path):
    (tmp_path / "p.toml").write_text("[[matrix]]\nkey = 'a'\nfile = 'hybrid'\nshards = 2\n")
    assert sources.settings(["p.toml"], tmp_path, TODAY).matrix[0].shards == 2
    text = "[matrix]\nname = 'm'\ndescription = 'x'\n[axes]\nmodel = ['jamba-tiny']\n"
    (tmp_path / "m.toml").write_text(text)
    made = sources.settings(["m.toml"], tmp_path, TODAY)
    assert [work.file for work in made.matrix] == ["m.toml"]
    assert made.check[-2].command == "staticfire sync --engine reference jamba-tiny"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["tests", "tests/"], "tests/ and tests have tests in common"),
        (["tests/engine", "./tests"], "./tests and tests/engine have tests in common"),
        (["hybrid", "hybrid"], "hybrid is named twice"),
        ([""], "'' names nothing"),
    ],
)
def test_what_would_run_twice_or_is_nothing_is_refused(tmp_path, names, said):
    (tmp_path / "tests" / "engine").mkdir(parents=True)
    with pytest.raises(InputError, match=said):
        sources.settings(names, tmp_path, TODAY)
    assert len(sources.settings(["tests", "tests_more.py"], tmp_path, TODAY).tests) == 2
