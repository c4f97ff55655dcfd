"""The file of budgets: written and read back, and every fault of it told."""

import json

import pytest

from staticfire.kernels.budgets.file import Allowance, BudgetError, Budgets, Key, dump, load, path_for
from staticfire.kernels.budgets.resources import Resources

TAKEN = Resources(96, 0, 0, 8, 49152, 4096, "mma.sync", 8, 1, 4)
BUDGETS = Budgets(
    "3.9",
    {Key("attend", "bf16", "sm_80"): TAKEN, Key("attend", "bf16", "sm_90"): TAKEN, Key("add", "fp32", "sm_80"): TAKEN},
    {Key("attend", "bf16", "sm_80"): Allowance("an exponential", stack_bytes=8)},
)


def write(tmp_path, change):
    data = json.loads(dump(BUDGETS))
    change(data)
    path = tmp_path / "budgets.json"
    path.write_text(json.dumps(data))
    return path


def test_it_reads_what_it_wrote(tmp_path):
    path = tmp_path / "budgets.json"
    path.write_text(dump(BUDGETS))
    assert load(path) == BUDGETS
    assert dump(load(path)) == path.read_text()


def test_empty_budgets_are_a_file_too(tmp_path):
    path = tmp_path / "budgets.json"
    path.write_text(dump(Budgets("3.10")))
    assert load(path) == Budgets("3.10")


def test_a_target_is_a_line():
    assert sum('"registers"' in line for line in dump(BUDGETS).splitlines()) == len(BUDGETS.kernels)


def test_it_is_named_after_major_and_minor():
    assert path_for("3.10.1").name == "triton-3.10.json"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.pop("triton"), "expected an object with schema 1 and the keys"),
        (lambda data: data.update(extra=1), "expected an object with schema 1 and the keys"),
        (lambda data: data.update(schema=2), "expected an object with schema 1"),
        (lambda data: data.update(kernels=[]), "kernels: must be an object"),
        (lambda data: data["kernels"].update(attend=1), "attend: must be an object"),
        (lambda data: data["kernels"]["attend"].update(bf16=1), "attend bf16: must be an object"),
        (lambda data: data["kernels"]["attend"]["bf16"].update(sm_80=1), "attend bf16 on sm_80: must be an object"),
        (lambda data: data["kernels"]["attend"]["bf16"]["sm_80"].pop("bounds"), "must have the keys registers"),
        (lambda data: data["kernels"]["attend"]["bf16"]["sm_80"].update(spills=-1), "spills cannot be -1"),
        (lambda data: data["kernels"]["attend"]["bf16"]["sm_80"].update(spills=True), "spills cannot be True"),
        (lambda data: data["kernels"]["attend"]["bf16"]["sm_80"].update(tensor_core=1), "tensor_core cannot be 1"),
        (lambda data: data["allowances"]["attend"]["bf16"]["sm_80"].pop("reason"), "an allowance needs a reason"),
        (lambda data: data["allowances"]["attend"]["bf16"]["sm_80"].update(reason=" "), "an allowance needs a reason"),
        (lambda data: data["allowances"]["attend"]["bf16"]["sm_80"].pop("stack_bytes"), "or shared_bytes, a whole"),
        (lambda data: data["allowances"]["attend"]["bf16"]["sm_80"].update(stack=1), "unknown stack"),
    ],
)
def test_faults_are_told(tmp_path, change, message):
    with pytest.raises(BudgetError, match=message):
        load(write(tmp_path, change))


def test_all_faults_are_told_at_once(tmp_path):
    def change(data):
        data["kernels"]["attend"]["bf16"]["sm_80"]["spills"] = -1
        data["kernels"]["add"]["fp32"]["sm_80"]["bounds"] = "x"

    with pytest.raises(BudgetError, match=r"add fp32 on sm_80: bounds cannot be 'x'.*|spills cannot be -1") as caught:
        load(write(tmp_path, change))
    assert "attend bf16 on sm_80: spills cannot be -1" in str(caught.value)
    assert "add fp32 on sm_80: bounds cannot be 'x'" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"), [("{", "Expecting"), ("[" * 100_000, "recursion")], ids=["cut off", "too deep"]
)
def test_what_is_no_json_is_told(tmp_path, text, message):
    path = tmp_path / "budgets.json"
    path.write_text(text)
    with pytest.raises(BudgetError, match=rf"budgets\.json: .*{message}"):
        load(path)
