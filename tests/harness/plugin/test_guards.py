"""Guards: each fails what it is for, names it, leaves sound tests alone, and is off unless asked for."""

import sys
import threading

import pytest

from staticfire.harness.plugin.guards.asserting import asserting_lines
from staticfire.harness.plugin.guards.leaks import state
from staticfire.harness.plugin.guards.watch import TraceWatch

ASSERTIONS = """
    import pytest, unittest
    from helper import check_it

    HERE = False

    def test_returns_early():
        if not HERE:
            return
        assert True

    def test_nothing(): ...

    def test_asserts():
        assert True

    def test_raises():
        with pytest.raises(ValueError):
            int("x")

    def test_by_a_helper():
        check_it(1)

    class TestUnit(unittest.TestCase):
        def test_unit(self):
            self.assertEqual(1, 1)

    @pytest.mark.sf_allow("assertions", reason="that it starts is the test")
    def test_excused(): ...

    def test_asks_for_a_runner(vllm_runner):
        assert vllm_runner

    @pytest.mark.skip(reason="no device")
    def test_skipped(): ...

    @pytest.mark.matrix("toy.toml", model="jamba-tiny", verdict="refused", block_size=16)
    def test_refused(cell):
        from staticfire.engine.config import accept, model_info
        from staticfire.harness.models import catalog
        accept(cell.config, model_info(catalog.load(cell.model).config, cell.model))
"""
FAIL = {"test_returns_early", "test_nothing", "test_asks_for_a_runner"}


@pytest.fixture
def asserting(suite):
    suite.write("helper.py", "def check_it(value):\n    return value\n")
    suite.write("test_it.py", ASSERTIONS)
    return suite


def failed(run):
    return {name.rpartition("::")[2] for name, outcome in run.outcomes.items() if outcome in ("failed", "error")}


def test_a_pass_without_an_assertion_fails(asserting):
    run = asserting.run("--sf-guards", "assertions", PYTHONPATH=str(asserting.folder))
    assert failed(run) == FAIL
    assert run.text.count("passed without asserting anything") == 4  # the reason of each, and in the summary again
    assert "though it asks for vllm_runner" in run.text


def test_guards_are_off_unless_asked_for(asserting):
    assert failed(asserting.run(PYTHONPATH=str(asserting.folder))) == set()


def test_guards_are_on_by_the_ini_file_and_off_by_the_command_line(asserting):
    (asserting.folder / "pytest.ini").write_text("[pytest]\nsf_guards = assertions skips\n")
    assert failed(asserting.run(PYTHONPATH=str(asserting.folder))) == FAIL
    assert failed(asserting.run("--sf-guards", "none", PYTHONPATH=str(asserting.folder))) == set()


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="a trace function bars the view before Python 3.12 only")
def test_a_traced_run_says_that_nothing_was_watched(suite):
    suite.write("conftest.py", "import sys\ndef pytest_runtest_setup(item):\n    sys.settrace(lambda *a: None)\n")
    suite.write("test_it.py", "def test_it(): ...\n")
    run = suite.run("--sf-guards", "assertions")
    assert failed(run) == set()
    assert "1 tests were not watched" in run.text
    assert "1 tests were not watched" in suite.run("--sf-guards", "assertions", "-n", "1").text


def test_an_excuse_needs_a_guard_and_a_reason(suite):
    suite.write(
        "test_it.py",
        """
        import pytest

        @pytest.mark.sf_allow("assertion", reason="x")
        def test_one(): ...

        @pytest.mark.sf_allow("assertions")
        def test_two(): ...
        """,
    )
    run = suite.run("--sf-guards", "assertions")
    assert failed(run) == {"test_one", "test_two"}
    assert "Did you mean 'assertions'?" in run.text
    assert "needs reason=" in run.text


def test_which_lines_assert(tmp_path):
    file = tmp_path / "x.py"
    file.write_text(
        "assert 1\nnp.testing.assert_equal(1, 1)\nprint(1)\nwith pytest.raises(E):\n    check_all()\nfailure()\n"
    )
    assert asserting_lines(str(file)) == {1, 2, 4, 5}


def test_a_watch_takes_nothing_over():
    watch = TraceWatch(lambda _: frozenset())
    assert watch.start()
    other = TraceWatch(lambda _: frozenset())
    assert not other.start()
    other.stop()
    assert threading.main_thread() is threading.current_thread()
    watch.stop()
    assert watch.start()
    watch.stop()


LEAKS = """
    import os, threading, time
    import pytest

    def test_sets_a_variable():
        os.environ["SF_LEAK"] = "1"

    def test_victim():
        assert os.environ.pop("SF_LEAK") == "1"

    def test_puts_it_back(monkeypatch):
        monkeypatch.setenv("SF_OTHER", "1")

    def test_leaves_a_thread():
        threading.Thread(target=time.sleep, args=(20,), name="left over", daemon=True).start()

    def test_thread_that_ends():
        threading.Thread(target=time.sleep, args=(0.2,)).start()

    def test_known_thread():
        threading.Thread(target=time.sleep, args=(20,), name="pool-1", daemon=True).start()

    def test_changes_folder(tmp_path):
        os.chdir(tmp_path)

    @pytest.fixture(scope="module")
    def sound():
        os.environ["SF_MODULE"] = "1"
        yield
        del os.environ["SF_MODULE"]

    @pytest.fixture(scope="class")
    def leaking():
        os.environ["SF_CLASS"] = "1"

    class TestOne:
        def test_first(self, sound, leaking): ...
        def test_second(self, sound, leaking): ...

    def test_last(sound): ...
"""


def test_leaks_are_the_leaking_tests_fault(suite):
    suite.write("test_it.py", LEAKS)
    run = suite.run("--sf-guards=leaks", "-o", "sf_known_threads=pool-*")
    assert failed(run) == {
        "test_sets_a_variable",
        "test_victim",  # it unset what it had found
        "test_leaves_a_thread",
        "test_changes_folder",
        "test_second",  # the last user of the fixture that leaks
    }
    assert "left the variable SF_LEAK='1', it was not set" in run.text
    assert "left the thread 'left over' running" in run.text
    assert "the fixture 'leaking' (class) left the variable SF_CLASS='1'" in run.text
    assert failed(suite.run()) == set()


def test_the_state_of_a_process_leaves_pytests_own_variable_out():
    assert "PYTEST_CURRENT_TEST" not in state().environment


FAKE_TORCH = """
    class cuda:
        started = False

        @classmethod
        def init(cls):
            cls.started = True

        @classmethod
        def is_initialized(cls):
            return cls.started
"""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("torch.cuda.init()", "collecting test_b.py initialised CUDA"),
        (
            "import multiprocessing; multiprocessing.set_start_method('spawn')",
            "made processes start by spawn, not by None",
        ),
    ],
)
def test_collection_that_touches_the_device_names_the_file(suite, line, words):
    suite.write("lib/torch.py", FAKE_TORCH)
    suite.write("test_a.py", "import torch\ndef test_it(): ...\n")
    suite.write("test_b.py", f"import torch\n{line}\ndef test_it(): ...\n")
    suite.write("test_c.py", "import torch\ndef test_it(): ...\n")
    run = suite.run("--sf-guards=cuda", PYTHONPATH=str(suite.folder / "lib"))
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert words in run.text
    assert run.outcomes == {}
    (suite.folder / "test_b.py").unlink()
    assert suite.run("--sf-guards=cuda", PYTHONPATH=str(suite.folder / "lib")).code == 0


def test_ids_that_differ_between_processes_are_named(suite):
    suite.write(
        "test_it.py",
        """
        import pytest

        @pytest.mark.parametrize("name", {"john", "kate"})
        def test_set(name): ...

        @pytest.mark.parametrize("thing", [object()], ids=str)
        def test_address(thing): ...
        """,
    )
    run = suite.run("--sf-guards=ids")
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert "test_it.py:4: test_set takes 'name' from a set" in run.text.replace("test_it.py:3", "test_it.py:4")
    assert "the id holds a memory address" in run.text


def test_skips_come_with_a_type_and_not_out_of_a_body(suite):
    suite.write(
        "test_it.py",
        """
        import pytest
        from staticfire.harness.plugin.helpers import TypedSkip

        def test_body():
            pytest.skip("today")

        def test_typed():
            raise TypedSkip("version", "too old")

        @pytest.mark.requires(package="no_such_package")
        def test_package(): ...

        @pytest.mark.requires(package="no_such_package.part")
        def test_part(): ...

        @pytest.mark.requires(package="mamba-ssm")
        def test_distribution(): ...

        @pytest.mark.requires(version="pytest<1")
        def test_version(): ...

        @pytest.mark.requires(device="cuda")
        def test_device(): ...

        @pytest.mark.requires(package="pytest", version="pytest>=1", device="cpu")
        def test_here(): ...

        @pytest.mark.requires(packages="x")
        def test_mistake(): ...
        """,
    )
    run = suite.run("--sf-guards=skips", "-rs")
    assert failed(run) == {"test_body", "test_mistake", "test_distribution"}
    assert run.count("skipped") == 5
    for reason in (
        "package: no_such_package is not installed",
        "package: no_such_package.part is not installed",
        "version: pytest<1 is needed",
        "device: no cuda device",
    ):
        assert reason in run.text
    assert "Did you mean 'package'?" in run.text
    assert "must be a name that is imported, such as 'mamba_ssm'" in run.text


GREENER = """
    import pytest

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(session):
        session.exitstatus = 0
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_an_import_error_never_turns_green(suite, workers):
    suite.write("conftest.py", GREENER)
    suite.write("test_bad.py", "import no_such_module\n")
    suite.write("test_ok.py", "def test_it():\n    assert True\n")
    arguments = ("--continue-on-collection-errors", "--reruns", "1", *workers)
    assert suite.run(*arguments).code == 0, "the conftest makes it green"
    run = suite.run(*arguments, "--sf-guards=collection")
    assert run.code == 1
    assert "test_bad.py: " in run.text.partition("staticfire guard collection")[2]


def test_a_module_that_hides_its_import_error_and_a_file_without_tests_are_red(suite):
    suite.write("test_hides.py", "import pytest\npytest.importorskip('no_such_module')\ndef test_it(): ...\n")
    suite.write("test_empty.py", "x = 1\n")
    suite.write("test_ok.py", "def test_it(): ...\n")
    assert suite.run().code == 0
    run = suite.run("--sf-guards=collection", "test_hides.py", "test_empty.py", "test_ok.py")
    assert run.code == 1
    assert "test_hides.py: skipped itself: " in run.text
    assert "test_empty.py: named on the command line, and holds no test" in run.text
