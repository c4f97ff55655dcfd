"""Every syntactic form, as small suites with the sites that a person reads in them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from staticfire.harness.scan.base import Configuration, Scan, Site, Unknown
from staticfire.harness.scan.coverage import count_calls
from staticfire.harness.scan.scan import scan

CASES = Path(__file__).parent / "cases"
SUITES: dict[str, dict[str, Any]] = yaml.safe_load((CASES / "forms.yaml").read_text())


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((CASES / text[1:]).read_text() if text.startswith("@") else text)


def typed(item: Configuration, layer: str) -> dict[str, Any]:
    return {name: value.value for name, value in item.keywords.items() if value.layer == layer}


def wanted_sites(result: Scan, folder: Path, wanted: list[dict[str, Any]]) -> list[tuple[Site, dict[str, Any]]]:
    """Pair sites with what is expected, leaving out the wrapper's own construction in the shared conftest."""
    found = [site for site in result.sites if Path(site.where.path).name != "conftest.py"]
    assert [site.form for site in found] == [item["form"] for item in wanted]
    for site, item in zip(found, wanted, strict=True):
        assert "line" not in item or site.where.line == item["line"]
        assert "path" not in item or Path(site.where.path).name == item["path"]
    assert folder.exists()
    return list(zip(found, wanted, strict=True))


@pytest.mark.parametrize("name", SUITES)
def test_form(name: str, tmp_path: Path) -> None:
    suite = SUITES[name]
    (tmp_path / "pyproject.toml").touch()
    write(tmp_path, suite["files"])
    result = scan([tmp_path / suite.get("scan", ".")])
    for site, wanted in wanted_sites(result, tmp_path, suite["sites"]):
        check(site, wanted)
    assert not result.unread


def check(site: Site, wanted: dict[str, Any]) -> None:
    items = site.configurations
    assert all(item.full for item in items) is wanted["full"]
    if "params" in wanted:
        assert [item.params for item in items] == wanted["params"]
    for key, by_key in (("each", "params"), ("callers", "caller")):
        for name, expected in wanted.get(key, {}).items():
            (item,) = (item for item in items if getattr(item, by_key) == name)
            assert item.model == expected["model"]
            assert typed(item, "call") == expected["call"]
    if "models" in wanted:
        assert [item.model for item in items] == wanted["models"]
    if "call" in wanted or "model" in wanted:
        assert all(item.model == wanted["model"] for item in items)
    if "alternatives" in wanted:
        assert [typed(item, "call") | typed(item, "environment") for item in items] == wanted["alternatives"]
    if "call" in wanted:
        (item,) = items
        assert typed(item, "call") == wanted["call"]
    for item in items:
        assert typed(item, "wrapper") == wanted.get("wrapper", typed(item, "wrapper"))
        assert typed(item, "environment") == wanted.get("environment", typed(item, "environment"))
    rest(site, wanted)


def rest(site: Site, wanted: dict[str, Any]) -> None:
    (first, *_) = site.configurations
    if "front_end" in wanted:
        assert {name: value.value for name, value in first.front_end.items()} == wanted["front_end"]
    if "negative" in wanted:
        assert site.negative is not None
        assert [list(site.negative.exceptions), site.negative.match] == wanted["negative"]
    else:
        assert site.negative is None
    assert (site.patched is not None) is wanted.get("patched", False)
    if "guards" in wanted:
        assert [[guard.kind, guard.decided] for guard in site.guards] == wanted["guards"]
    if "missing" in wanted:
        assert first.missing == wanted["missing"]
    for name, reason in wanted.get("unknown", {}).items():
        value = first.keywords[name].value
        assert isinstance(value, Unknown)
        assert value.reason == reason


@pytest.mark.parametrize("name", SUITES)
def test_sites_of_each_form_equal_the_independent_count(name: str, tmp_path: Path) -> None:
    write(tmp_path, SUITES[name]["files"])
    result = scan([tmp_path])
    counts = count_calls(tmp_path.rglob("*.py"))
    found = {form: sum(site.form == form for site in result.sites) for form in counts}
    assert found == dict(counts)


EXPECTS = """
import pytest
from pydantic import ValidationError
from contextlib import nullcontext
from vllm import LLM
from elsewhere import LIMIT
@pytest.mark.parametrize("seqs, expected", [(1, 2048), (0, ValidationError), (2, LIMIT)])
def test_it(seqs, expected):
    context = nullcontext()
    if expected == ValidationError:
        context = pytest.raises(expected)
    with context:
        LLM("m", max_num_seqs=seqs)
"""


def test_a_number_is_no_exception_so_that_set_expects_no_refusal(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(EXPECTS)
    (site,) = scan([tmp_path]).sites
    expected: dict[Any, set[bool]] = {}
    for one in site.configurations:
        expected.setdefault(one.keywords["max_num_seqs"].value, set()).add(one.negative is not None)
    # A name from elsewhere can be another name of the same exception.
    assert expected == {1: {False}, 0: {True}, 2: {True, False}}


def test_a_flag_of_several_words_takes_them_all(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("vllm serve m --offload-params gate_up_proj down_proj --numa-bind-nodes 0 1\n")
    (site,) = scan([tmp_path]).sites
    (one,) = site.configurations
    assert typed(one, "call") == {"offload_params": ["gate_up_proj", "down_proj"], "numa_bind_nodes": [0, 1]}
