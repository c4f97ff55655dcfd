"""Where configurations are found, and in which order."""

import json
import os

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.models import catalog
from staticfire.harness.probe.models import BrokenModelError, ModelSource, hub_folder


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "configs").mkdir()
    return ModelSource(tmp_path / "configs", folder=tmp_path / "made")


def config(path, name="JambaForCausalLM", **more):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"architectures": [name], **more}))
    return path


def snapshot(tmp_path, model, revision, name, *, main=False):
    where = tmp_path / "hub" / f"models--{model.replace('/', '--')}"
    config(where / "snapshots" / revision / "config.json", name)
    if main:
        (where / "refs").mkdir(exist_ok=True)
        (where / "refs" / "main").write_text(revision)


def test_our_own_models_are_found_by_name(source):
    found = source.find("jamba-v0.1")
    assert found is not None
    assert (found.source, found.certain, found.architecture) == ("matrices", True, "JambaForCausalLM")
    assert json.loads((found.path / "config.json").read_text()) == catalog.load("jamba-v0.1").config


@pytest.mark.parametrize("where", ["org/name/config.json", "org/name.json", "org--name.json", "name.json"])
def test_a_users_folder_may_be_laid_out_in_any_of_these_ways(source, tmp_path, where):
    config(tmp_path / "configs" / where)
    found = source.find("org/name")
    assert found is not None
    assert (found.source, found.architecture) == ("model-configs", "JambaForCausalLM")


def test_a_users_folder_goes_before_ours_and_the_cache(source, tmp_path):
    config(tmp_path / "configs" / "jamba-v0.1.json", "OtherForCausalLM")
    found = source.find("jamba-v0.1")
    assert found is not None
    assert found.architecture == "OtherForCausalLM"


def test_the_hubs_cache_is_read_at_the_revision_of_main(source, tmp_path):
    snapshot(tmp_path, "org/name", "aaa", "OldForCausalLM")
    snapshot(tmp_path, "org/name", "bbb", "NewForCausalLM", main=True)
    snapshot(tmp_path, "org/name", "ccc", "DraftForCausalLM")
    found = source.find("org/name")
    assert found is not None
    assert (found.source, found.architecture) == ("huggingface-cache", "NewForCausalLM")


def test_a_snapshot_without_main_is_found_too(source, tmp_path):
    snapshot(tmp_path, "org/name", "aaa", "OnlyForCausalLM")
    found = source.find("org/name")
    assert found is not None
    assert found.architecture == "OnlyForCausalLM"


def test_a_folder_on_disk_gives_its_configuration_and_nothing_heavy(source, tmp_path):
    folder = tmp_path / "checkpoint"
    config(folder / "config.json")
    for name in ("model.safetensors", "modeling_evil.py", "tokenizer.json", "generation_config.json"):
        (folder / name).write_text("{}")
    found = source.find(str(folder))
    assert found is not None
    assert found.source == "folder"
    assert sorted(path.name for path in found.path.iterdir()) == ["config.json", "generation_config.json"]


def test_the_same_content_is_one_folder(source):
    first = source.put({"architectures": ["A"], "hidden_size": 8}, "architecture")
    again = source.put({"hidden_size": 8, "architectures": ["A"]}, "architecture", certain=False)
    other = source.put({"hidden_size": 16, "architectures": ["A"]}, "architecture")
    assert first.path == again.path != other.path
    assert (first.certain, again.certain) == (True, False)


@pytest.mark.parametrize("name", ["nobody/nothing", "", "../../etc", "a/b/c", "/nowhere", "x\0y", "org/../../etc"])
def test_what_is_not_at_hand_is_none(source, name):
    assert source.find(name) is None


@pytest.mark.parametrize(("text", "words"), [("{", "is not JSON"), ("[1]", "must be a JSON object")])
def test_a_file_that_is_no_configuration_is_said(source, tmp_path, text, words):
    (tmp_path / "configs" / "name.json").write_text(text)
    with pytest.raises(InputError, match=words):
        source.find("org/name")


def test_a_folder_of_configurations_must_be_one(tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        ModelSource(tmp_path / "absent")


def test_an_architecture_stands_in_with_two_sizes_and_is_never_certain(source):
    asked = []

    def make(architecture, sizes):
        asked.append((architecture, sizes))
        return {"architectures": [architecture], "hidden_size": 8 * sizes}

    one = source.stand_in("JambaForCausalLM", make)
    two = source.stand_in("JambaForCausalLM", make, sizes=2)
    assert asked == [("JambaForCausalLM", 1), ("JambaForCausalLM", 2)]
    assert one.path != two.path
    assert not one.certain
    assert source.stand_in("Absent", lambda *_: "no class") == "no class"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"HF_HUB_CACHE": "/a"}, "/a"),
        ({"HF_HOME": "/b"}, "/b/hub"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"),
    ],
)
def test_the_hubs_own_variables_say_where_its_cache_is(monkeypatch, variables, expected):
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(hub_folder()) == expected


def test_a_pipe_in_place_of_a_configuration_is_said_and_not_waited_for(tmp_path):
    folder = tmp_path / "configs" / "org" / "plain"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "config.json")
    with pytest.raises(BrokenModelError, match="is no regular file"):
        ModelSource(tmp_path / "configs", folder=tmp_path / "made").find("org/plain")
