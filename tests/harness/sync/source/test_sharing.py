"""Values that are carried where the worker runs in the engine core's process, on its object, and nowhere else."""

import json

import jsonschema
import pytest

from staticfire.harness.cli import main
from staticfire.harness.sync.source.audit import audit
from staticfire.harness.sync.source.text import render

MESSAGES, CORE, CLIENT, WORKER, EXECUTOR = (
    f"engine/{name}.py" for name in ("messages", "core", "client", "worker", "executor")
)
CARRIED = (
    (MESSAGES, "block: int", "block: int\n            stride: int | None = None"),
    (CORE, "block=cache.block)", "block=cache.block, stride=cache.stride)"),
    (CLIENT, "cache.block = hello.block", "cache.block = hello.block; whole.cache.stride = hello.stride"),
)
"""The field that workers write, in the response, filled in and taken over."""
ALONE = "        class Alone(Executor):\n            def _begin(self):\n                "
OWN = f"{ALONE}Align.settle(self.whole)"
MANY = """
        class Many(Executor):
            def _begin(self):
                self.process = Process(target=Worker.main, kwargs={"whole": self.whole})
        """
BEGINS = "self._begin()\n"
TELLS = """self._begin()
                self.tell("prepare")

            def tell(self, method: str): ...
"""
PREPARE = """def prepare(self):
                Align.settle(self.whole)

            def loop(self):"""


def alone(*lines):
    """The edit that has the executor without workers do something else."""
    return (EXECUTOR, OWN, ALONE + "\n                ".join(lines))


def imported(file, text):
    """The edit that imports something."""
    return (file, "from engine.config import Whole", f"{text}\n        from engine.config import Whole")


@pytest.fixture
def look(edited):
    """What is found and what is partly carried, by field, after some edits."""

    def look(*edits):
        report = audit(edited(*CARRIED, *edits), processes=1)
        return tuple({item.field: item for item in items} for items in (report.findings, report.partly))

    return look


def where(root, file, text):
    lines = (root.parent / file).read_text().splitlines()
    return next(number for number, found in enumerate(lines, 1) if text in found)


def test_one_executor_shares_the_core_s_object_so_it_is_no_finding_and_is_listed_apart(edited, repo_root):
    root = edited(*CARRIED)
    report = audit(root, processes=1)
    assert report.findings == ()
    (partly,) = report.partly
    assert (partly.field, partly.process, partly.carried_by) == ("cache.stride", "worker", "Hello")
    assert partly.sharing is not None
    ((together,), (apart,)) = partly.sharing
    assert (together.name, together.place.line) == ("Alone", where(root, EXECUTOR, "class Alone"))
    assert (apart.name, apart.place.line) == ("Many._begin", where(root, EXECUTOR, "Process(target=Worker.main"))
    assert apart.place.path.endswith(EXECUTOR)
    document = report.as_json()
    jsonschema.validate(document, json.loads((repo_root / "docs/schemas/sync-source.json").read_text(encoding="utf-8")))
    assert document["findings"] == []
    (entry,) = document["partly_carried"]
    assert entry["not_carried_under"] == [{"name": "Many._begin", "path": apart.place.path, "line": apart.place.line}]
    assert [site["name"] for site in entry["carried_under"]] == ["Alone"]


def test_the_text_has_a_section_of_its_own_after_the_findings(edited):
    finding = (WORKER, "cache.block = 80", "cache.block = 80; cache.quiet = 7")
    config = ("engine/config.py", "self.quiet = self.block", "pass")
    text = render(audit(edited(*CARRIED, finding, config), processes=1))
    findings, _, partly = text.partition("carried only where the worker runs in the engine core's process:\n")
    assert "cache.quiet" in findings
    assert "cache.stride" not in findings
    assert "carried under Alone (" in partly
    assert "not where processes are started by Many._begin (" in partly
    assert "1 field does not travel, 1 is carried only where" in partly


def test_all_of_it_partly_carried_is_said_and_is_no_finding(edited, capsys):
    assert main(["sync", str(edited(*CARRIED))]) == 0
    out = capsys.readouterr().out
    assert "1 of it only there" in out
    assert "is carried, 1 of it" in out


@pytest.mark.parametrize(
    "edits",
    [
        [alone("pass")],
        [alone("Align.settle(copy.deepcopy(self.whole))"), imported(EXECUTOR, "import copy")],
        [alone("mine = copy.deepcopy(self.whole)", "Align.settle(mine)"), imported(EXECUTOR, "import copy")],
        [alone("self.mine = copy.deepcopy(self.whole)", "Align.settle(self.mine)"), imported(EXECUTOR, "import copy")],
        [
            alone("Align.settle(replace(self.whole, cache=replace(self.whole.cache)))"),
            imported(EXECUTOR, "from dataclasses import replace"),
        ],
        [alone("Align.settle(pickle.loads(pickle.dumps(self.whole)))"), imported(EXECUTOR, "import pickle")],
        [(EXECUTOR, f"{OWN}\n", "")],
    ],
    ids=["not-run", "deep", "named", "kept", "replaced-inside", "pickled", "no-such-executor"],
)
def test_under_no_executor_it_is_a_finding(look, edits):
    findings, partly = look(*edits)
    assert not partly
    finding = findings["cache.stride"]
    assert (finding.carried_by, finding.sharing) == ("Hello", None)
    assert finding.applied is not None
    assert "which worker processes do not write" in finding.reason


@pytest.mark.parametrize(
    "call", ["copy.copy(self.whole)", "dataclasses.replace(self.whole)", "replace(self.whole, model=None)"]
)
def test_a_shallow_copy_holds_the_core_s_own_sections(look, call):
    findings, partly = look(
        alone(f"Align.settle({call})"),
        imported(EXECUTOR, "import copy, dataclasses\n        from dataclasses import replace"),
    )
    assert not findings
    assert partly.keys() == {"cache.stride"}


def test_one_of_two_executors_without_workers_is_named_where_the_other_does_nothing(look):
    idle = "\n        class Idle(Executor):\n            def _begin(self):\n                pass\n"
    findings, partly = look((EXECUTOR, MANY, idle + MANY))
    assert not findings
    assert [site.name for site in partly["cache.stride"].sharing.together] == ["Alone"]


def test_what_workers_are_told_by_name_an_executor_without_workers_does_itself(look):
    edits = [
        (WORKER, "def loop(self):", PREPARE),
        (WORKER, "    Align.settle(whole)", "    self.whole = whole"),
        (EXECUTOR, BEGINS, TELLS),
    ]
    _, partly = look(*edits, alone("self.worker = Worker(self.whole)"))
    assert partly.keys() == {"cache.stride"}
    findings, partly = look(*edits, alone("self.worker = None"))
    assert findings.keys() == {"cache.stride"}
    assert not partly


@pytest.mark.parametrize(
    "start", ["ray.remote(Worker)", "ray.remote(num_cpus=0)(Worker)", "ray.remote(Worker).options()"]
)
def test_an_executor_that_starts_remote_objects_shares_nothing(look, start):
    distant = (
        "\n        class Distant(Executor):\n            def _begin(self):\n"
        f"                self.workers = [{start}.remote(self.whole)]\n"
    )
    findings, partly = look((EXECUTOR, MANY, distant + MANY), imported(EXECUTOR, "import ray"))
    assert not findings
    sharing = partly["cache.stride"].sharing
    assert [site.name for site in sharing.together] == ["Alone"]
    assert [site.name for site in sharing.apart] == ["Distant._begin", "Many._begin"]


RUNS = """class Started(Process):
            def __init__(self, whole: Whole):
                super().__init__()
                self.whole = whole

            def run(self):
                Worker(self.whole).loop()

        class Executor(ABC)"""


@pytest.mark.parametrize(
    "start",
    [
        "Process(None, Worker.main, kwargs={'whole': self.whole})",
        "multiprocessing.get_context('spawn').Process(target=Worker.main, kwargs={'whole': self.whole})",
        "Started(self.whole)",
    ],
)
def test_processes_are_started_in_other_ways_too(look, start):
    findings, partly = look(
        (EXECUTOR, 'Process(target=Worker.main, kwargs={"whole": self.whole})', start),
        (EXECUTOR, "class Executor(ABC)", RUNS),
    )
    assert not findings
    assert [site.name for site in partly["cache.stride"].sharing.apart] == ["Many._begin"]


@pytest.mark.parametrize("decorator", ["@ray.remote", "@ray.remote(num_cpus=0)"])
def test_so_does_one_whose_workers_are_decorated(look, decorator):
    distant = (
        "\n        class Distant(Executor):\n            def _begin(self):\n"
        "                self.workers = [Worker.options(name='w').remote(self.whole)]\n"
    )
    _, partly = look(
        (EXECUTOR, MANY, distant + MANY),
        imported(WORKER, "import ray"),
        (WORKER, "        class Worker:", f"        {decorator}\n        class Worker:"),
    )
    assert [site.name for site in partly["cache.stride"].sharing.apart] == ["Distant._begin", "Many._begin"]


def test_code_that_the_core_runs_itself_as_well_travels(look):
    called = (CORE, "whole.model.length = 64", "whole.model.length = 64; Align.settle(whole)")
    findings, partly = look(called, imported(CORE, "from engine.worker import Align"))
    assert not findings
    assert not partly


def test_a_message_that_no_client_takes_over_carries_under_no_executor(edited):
    report = audit(edited(*CARRIED[:2]), processes=1)
    assert [finding.field for finding in report.findings] == ["cache.stride"]
    assert report.partly == ()


HANDS = """self.process = Process(target=Worker.main, kwargs={"whole": self.whole})
                self.tell("loop")

                def settle(worker: Worker):
                    Align.settle(worker.whole)

                self.tell(settle)
"""


@pytest.mark.parametrize(("own", "found", "partly"), [("pass", 1, 0), ("Align.settle(self.whole)", 0, 1)])
def test_a_function_in_a_function_that_is_handed_to_workers_runs_in_them_alone(look, own, found, partly):
    edits = [
        (WORKER, "    Align.settle(whole)", "    self.whole = whole"),
        (EXECUTOR, 'self.process = Process(target=Worker.main, kwargs={"whole": self.whole})\n', HANDS),
        (EXECUTOR, BEGINS, f"{BEGINS}\n            def tell(self, method): ...\n"),
    ]
    results = look(*edits, alone(own))
    assert ["cache.stride" in result for result in results] == [found, partly]


def test_a_function_in_a_function_knows_the_names_around_it(look):
    closes = HANDS.replace("worker: Worker", "worker").replace("worker.whole", "self.whole")
    edits = [
        (WORKER, "    Align.settle(whole)", "    self.whole = whole"),
        (EXECUTOR, 'self.process = Process(target=Worker.main, kwargs={"whole": self.whole})\n', closes),
        (EXECUTOR, BEGINS, f"{BEGINS}\n            def tell(self, method): ...\n"),
    ]
    assert "cache.stride" in look(*edits, alone("pass"))[0]
