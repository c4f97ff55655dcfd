"""What no guard may fail: sound tests in every style that pytest knows, with all guards on."""

import pytest

SOUND = """
    \"\"\"A doctest compares by itself.

    >>> 1 + 1
    2
    \"\"\"
    import os, threading, time, unittest, warnings
    from unittest import mock

    import pytest
    from hypothesis import given, strategies as st

    CONSTANTS = ["0xdeadbeef", 0xdeadbeef]


    def setup_module():
        os.environ["SF_MODULE"] = "1"


    def teardown_module():
        del os.environ["SF_MODULE"]


    class TestUnit(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            os.environ["SF_UNIT"] = "1"

        @classmethod
        def tearDownClass(cls):
            del os.environ["SF_UNIT"]

        def test_sub(self):
            for number in range(2):
                with self.subTest(number=number):
                    self.assertGreater(2, number)

        @unittest.skip("not today")
        def test_marked(self): ...


    def test_mock():
        thing = mock.Mock()
        thing(1)
        thing.assert_called_once_with(1)


    def test_warns():
        with pytest.warns(UserWarning):
            warnings.warn("so")


    def test_subtests(subtests):
        with subtests.test():
            assert True


    @given(st.integers())
    def test_property(number):
        assert number == number


    @pytest.fixture
    def verified():
        calls = [1]
        yield calls
        assert calls == [1]


    @pytest.fixture
    def by_another(verified):
        return verified


    def test_its_fixture_asserts(by_another):
        by_another[:]


    @pytest.mark.xfail(reason="known", strict=False)
    def test_known_and_mended(): ...


    @pytest.mark.xfail(reason="known")
    def test_known():
        raise RuntimeError


    @pytest.mark.parametrize("value", CONSTANTS)
    @pytest.mark.parametrize("size", {1, 2})
    def test_ids(value, size):
        assert value


    def test_refusal(vllm_runner):
        with pytest.raises(Exception, match="SF101"):
            vllm_runner("jamba-tiny")


    @pytest.fixture(scope="module")
    def settings_of(vllm_runner):
        return {"block_size": 16}


    def test_of_what_a_wider_fixture_started(settings_of):
        assert settings_of["block_size"] == 16


    @pytest.fixture(scope="module")
    def server():
        os.environ["SF_SERVER"] = "1"
        threading.Thread(target=time.sleep, args=(20,), name="server", daemon=True).start()
        yield
        del os.environ["SF_SERVER"]


    @pytest.fixture(scope="class")
    def client(request):
        request.getfixturevalue("server")


    class TestClient:
        def test_it(self, client):
            assert os.environ["SF_SERVER"]


    def test_progress():
        from tqdm import tqdm

        assert sum(tqdm([1, 2])) == 3
"""
UNSOUND = """
    import os, shutil, unittest

    import pytest


    @pytest.mark.xfail(reason="known", strict=True)
    def test_mended_without_asserting(): ...


    def test_skips_in_unittests_words():
        raise unittest.SkipTest("today")


    def test_removes_the_folder_it_is_in(tmp_path):
        os.chdir(tmp_path)
        shutil.rmtree(tmp_path)
        assert True


    def test_next():
        assert True
"""


def bad(run):
    return {name for name, outcome in run.outcomes.items() if outcome in ("failed", "error")}


def test_sound_tests_pass_under_all_guards(suite):
    suite.write("test_it.py", SOUND)
    suite.write("test_important.py", "import pytest\npytest.skip('important: a GPU', allow_module_level=True)\n")
    run = suite.run(
        "--sf-guards=all", "-o", "sf_known_threads=server", "--doctest-modules", "test_it.py", "test_important.py"
    )
    assert bad(run) == set(), run.text
    assert run.code == 0, run.text
    assert run.count("passed") == 16, run.text
    assert "1 xpassed" in run.text


def test_guards_turn_no_red_test_green_and_break_none_that_follows(suite):
    suite.write("test_it.py", UNSOUND)
    run = suite.run("--sf-guards=all")
    assert bad(run) == {
        "test_it::test_mended_without_asserting",
        "test_it::test_skips_in_unittests_words",
        "test_it::test_removes_the_folder_it_is_in",
    }
    assert "[XPASS(strict)] known" in run.text
    assert "the body skipped itself (today)" in run.text
    assert "left the current folder (deleted)" in run.text
    assert "During handling of" not in run.text
    assert 'mark it @pytest.mark.sf_allow("leaks", reason="…")' in run.text


def test_a_file_whose_tests_are_left_out_is_not_a_file_without_tests(suite):
    suite.write("test_a.py", "def test_it():\n    assert True\n")
    suite.write("test_b.py", "def test_it():\n    assert False\n")
    files = ("--sf-guards=collection", "test_a.py", "test_b.py")
    assert suite.run(*files).code == 1
    assert "holds no test" not in suite.run("--lf", *files).text
    assert "holds no test" not in suite.run("--deselect=test_a.py::test_it", *files).text


def test_workers_tell_of_a_file_without_tests(suite):
    suite.write("test_empty.py", "x = 1\n")
    suite.write("test_ok.py", "def test_it():\n    assert True\n")
    run = suite.run("-n", "1", "--sf-guards=collection", "test_empty.py", "test_ok.py")
    assert run.code == 1
    assert "test_empty.py: named on the command line, and holds no test" in run.text


def test_a_mistake_that_only_workers_meet_is_told_as_a_usage_error(suite):
    suite.write(
        "test_it.py",
        """
        import pytest

        @pytest.mark.parametrize("thing", [object()], ids=str)
        def test_address(thing): ...
        """,
    )
    run = suite.run("-n", "1", "--sf-guards=ids")
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert "the id holds a memory address" in run.text
    assert "INTERNALERROR" not in run.text
