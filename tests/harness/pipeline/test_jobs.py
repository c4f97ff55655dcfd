"""Jobs: what cannot be planned is said with the step and the path, and what is selected stays selected."""

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.matrix import load
from staticfire.harness.pipeline import settings
from staticfire.harness.pipeline.jobs import plan
from toy_pipeline import SETTINGS, TODAY, make


def jobs(root, old="", new="", key="unit"):
    return [
        job for job in plan(make(root, SETTINGS.replace(old, new) if old else SETTINGS), root) if job.work.key == key
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('path = "tests"', 'path = "nowhere"', "tests 'unit': nowhere: no such file or folder"),
        ('label = "unit tests"', 'patterns = ["*_spec.py"]', r"tests 'unit': tests: no file is named \*_spec.py"),
        ('label = "unit tests"', 'exclude = ["tests/"]', "no file is named"),
        ('file = "hybrid"', 'file = "hybrd"', "Did you mean 'hybrid'"),
        ("shards = 3", 'select = ["block_size"]', "select 'block_size': must be AXIS=VALUE"),
        ("shards = 3", 'select = ["blok_size=16"]', "Did you mean 'block_size'"),
        ('name = "toy"', 'timings = ["nowhere"]', "nowhere: no such file or folder"),
    ],
)
def test_what_cannot_be_planned_is_said(tmp_path, old, new, said):
    with pytest.raises(InputError, match=said):
        jobs(tmp_path, old, new)


def test_a_selection_of_a_matrix_runs_just_those_cells(tmp_path):
    made = jobs(tmp_path, "shards = 3", 'select = ["model=llama-tiny", "block_size=16"]', "hybrid")
    wanted = {cell.id for cell in load("hybrid").cells() if cell.axes["model"] == "llama-tiny"}
    cells = {name for job in made for name in job.ids}
    assert cells
    assert cells < wanted


def test_as_few_shards_as_keep_each_below_the_minutes(tmp_path):
    cases = "".join(
        f'<testcase file="{name}" name="t" time="50"/>' for name in ("tests/test_a.py", "tests/deep/test_b.py")
    )
    (tmp_path / "t.xml").write_text(f"<testsuite>{cases}</testsuite>")
    text = SETTINGS.replace('name = "toy"', 'timings = ["t.xml"]').replace("shards = 2", "shard_minutes = 1.7")
    made = [job for job in plan(make(tmp_path, text), tmp_path) if job.work.key == "unit"]
    assert [job.seconds for job in made] == [100.0, 100.0]


def test_a_matrix_in_a_file_is_among_what_its_shards_depend_on(tmp_path):
    text = "[matrix]\nname = 'm'\ndescription = 'x'\n[axes]\nmodel = ['jamba-tiny']\n"
    (tmp_path / "m.toml").write_text(text)
    (job,) = jobs(tmp_path, 'file = "hybrid"', 'file = "m.toml"', "hybrid")
    assert job.needs == ("engine/", "m.toml")
    assert "run m.toml --cell jamba-tiny " in job.commands[-1]


def test_more_of_run_may_be_asked_and_comes_last(tmp_path):
    made = jobs(tmp_path, "shards = 3", 'options = "-j 4 --timeout 60"', "hybrid")
    assert made[0].commands[-1].endswith("--out staticfire-report/hybrid/1 -j 4 --timeout 60")
    assert made[0].commands[0] == "make setup"


def test_a_suite_may_be_cut_by_test_inside_each_job(tmp_path):
    new = 'command = "pytest {files} --sf-shard {shard} --junitxml={junit}"'
    made = jobs(tmp_path, 'label = "unit tests"', new)
    assert [job.commands[-1] for job in made] == [
        f"pytest tests --sf-shard {number}/2 --junitxml=staticfire-report/unit/{number}/junit.xml" for number in (1, 2)
    ]
    assert [job.seconds for job in made] == [None, None]
    with pytest.raises(InputError, match=r"tests\[1\].shards: must say how many"):
        make(tmp_path, SETTINGS.replace('label = "unit tests"', new).replace("shards = 2", ""))


def test_everything_that_is_not_there_is_told_at_once(tmp_path):
    text = "[[matrix]]\nkey = 'a'\nfile = 'hybird'\n[[tests]]\nkey = 'b'\npath = 'nowhere'\n"
    with pytest.raises(InputError, match=r"hybird(.|\n)*nowhere"):
        plan(settings.parse(text, "p.toml", TODAY), tmp_path)


def test_a_suite_depends_on_its_folder_and_not_on_what_only_begins_like_it(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("")
    text = "[[tests]]\nkey = 'b'\npath = '{}'\nneeds = ['src/']\n"
    for path, need in (("tests", "tests/"), ("tests/", "tests/"), ("tests/test_a.py", "tests/test_a.py")):
        (job,) = plan(settings.parse(text.format(path), "p.toml", TODAY), tmp_path)
        assert job.needs == ("src/", need)
