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
