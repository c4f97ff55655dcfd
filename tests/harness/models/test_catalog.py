"""Names of models: found, refused with the nearest name, and files that are not of our form."""

import json

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.models import catalog

REAL = {
    "jamba-v0.1",
    "jamba-1.5-mini",
    "bamba-9b",
    "nemotron-h-8b",
    "granite-4.0-h-tiny",
    "falcon-h1-0.5b",
    "qwen3-next-80b-a3b",
    "qwen3.5-dense",
    "qwen3.6-35b-a3b",
    "llama-3.1-8b",
}
TINY = {"jamba-tiny", "jamba-tiny-grow", "llama-tiny"}


def test_the_shipped_models_are_these():
    assert set(catalog.names()) == REAL | TINY
    assert {name for name in catalog.names() if catalog.load(name).tiny} == TINY


@pytest.mark.parametrize("name", sorted(REAL | TINY))
def test_every_file_is_found_by_its_name(name):
    found = catalog.find(name)
    assert found.name == name
    assert found.where == f"matrices/models/{name}.json"
    assert found.hf["architectures"]


def jamba_layers(config):
    return [
        (
            "attention" if i % config["attn_layer_period"] == config["attn_layer_offset"] else "mamba",
            "moe" if i % config["expert_layer_period"] == config["expert_layer_offset"] else "dense",
        )
        for i in range(config["num_hidden_layers"])
    ]


@pytest.mark.parametrize(("name", "tokens"), [("jamba-tiny", 11), ("jamba-tiny-grow", 76)])
def test_tiny_jambas_have_every_layer_kind_and_the_state_page_they_promise(name, tokens):
    config = catalog.load(name).config
    layers = jamba_layers(config)
    assert set(layers) == {(mixer, mlp) for mixer in ("attention", "mamba") for mlp in ("moe", "dense")}
    inner = config["mamba_expand"] * config["hidden_size"]
    state = inner * (config["mamba_d_conv"] - 1) + inner * config["mamba_d_state"]
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    assert state == tokens * 2 * config["num_key_value_heads"] * head_dim


def test_the_growing_jamba_has_several_recurrent_groups():
    mixers = [mixer for mixer, _ in jamba_layers(catalog.load("jamba-tiny-grow").config)]
    # Groups are as large as the smaller kind, here the attention layers.
    assert mixers.count("mamba") // mixers.count("attention") >= 2


def test_unknown_name_gives_the_nearest():
    with pytest.raises(InputError, match=r"No model 'jamba-tinny'.*Did you mean 'jamba-tiny'\?"):
        catalog.find("jamba-tinny")
    with pytest.raises(InputError, match=r"Did you mean 'llama-tiny'\?"):
        catalog.load("llama-tny")


def test_a_folder_and_a_file_are_found(tmp_path):
    folder = tmp_path / "some-model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "jamba", "hidden_size": 8}')
    for given in (folder, str(folder), folder / "config.json"):
        found = catalog.find(given)
        assert found.hf == {"model_type": "jamba", "hidden_size": 8}
        assert found.name == "some-model"
        assert found.where == str(folder / "config.json")


def test_a_folder_on_disk_with_the_name_of_a_model_does_not_hide_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jamba-tiny").mkdir()
    assert catalog.find("jamba-tiny").where == "matrices/models/jamba-tiny.json"


def test_one_of_our_files_is_found_by_path_too(tmp_path):
    model = catalog.load("jamba-tiny")
    document = {"name": "copy", "description": "d", "source": "s", "config": dict(model.config)}
    path = tmp_path / "copy.json"
    path.write_text(json.dumps(document))
    assert catalog.find(path).hf == model.config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"model_type": "jamba",\n "hidden_size": }', r"config\.json:2:17: not JSON: Expecting value"),
        ("", r"config\.json:1:1: not JSON"),
        ("[1]", r"config\.json: expected a JSON object, got list"),
        ('{"hidden_size": 8}', r"config\.json: model_type must be a string such as 'jamba', got None"),
        ('{"model_type": 3}', r"model_type must be a string such as 'jamba', got 3"),
    ],
)
def test_a_broken_config_names_file_line_and_fault(tmp_path, text, message):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match=message):
        catalog.find(tmp_path)


def test_a_config_that_is_not_text(tmp_path):
    (tmp_path / "config.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match=r"config\.json: not UTF-8 text at byte 7"):
        catalog.find(tmp_path)


def test_a_folder_without_config(tmp_path):
    with pytest.raises(InputError, match=r"the folder holds no config\.json"):
        catalog.find(tmp_path)


def test_all_faults_of_a_model_file_at_once():
    text = '{"name": "x", "description": "", "sorce": "s", "tiny": {"sed": 1, "gain": -1}, "config": {}}'
    with pytest.raises(InputError) as caught:
        catalog.parse_model_file(text, "m.json", "y")
    message = str(caught.value)
    assert message.startswith("m.json: ")
    for part in (
        "unknown key 'sorce'. Did you mean 'source'?",
        "description must be a non-empty string, got ''",
        "source must be a non-empty string, got None",
        "name is 'x', but the file is called 'y'",
        "config must be an object with a model_type",
        "unknown key tiny.'sed'. Did you mean 'seed'?",
        "tiny.seed must be a whole number from 0 on, got None",
        "tiny.gain must be a number above 0, got -1",
    ):
        assert part in message


def test_a_hugging_face_id_is_looked_up_in_the_local_cache_only(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    seen = []

    def lookup(repo_id, filename, **_):
        seen.append((repo_id, filename))
        path = tmp_path / "config.json"
        path.write_text('{"model_type": "jamba"}')
        return str(path)

    monkeypatch.setattr(hub, "try_to_load_from_cache", lookup)
    assert catalog.find("ai21labs/Jamba-v0.1").hf == {"model_type": "jamba"}
    assert seen == [("ai21labs/Jamba-v0.1", "config.json")]


def test_a_hugging_face_id_that_is_not_cached(monkeypatch, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda *_, **__: None)
    with pytest.raises(InputError, match="not in the local Hugging Face cache"):
        catalog.find("ai21labs/Jamba-v0.1")
