"""A configuration laid out flat: nothing left out, everything plain."""

import json
from dataclasses import fields, is_dataclass, replace

from settled_config import settled_config
from staticfire.engine.view import View, flatten


def leaves(value: object, name: str = "") -> list[str]:
    """Names of the fields that hold no dataclass, counted another way than `flatten` does."""
    if not is_dataclass(value) or name == "model.info":
        return [name]
    return [leaf for f in fields(value) for leaf in leaves(getattr(value, f.name), f"{name}.{f.name}".lstrip("."))]


def test_every_field_of_every_section_is_there_once():
    subject = settled_config("jamba-tiny-grow", block_size=16)
    assert list(flatten(subject)) == leaves(subject)
    assert flatten(subject)["runtime.block_size"] == 80
    assert flatten(subject)["cache.block_size"] == 16


def test_it_survives_json():
    flat = flatten(settled_config("jamba-tiny-grow"))
    assert json.loads(json.dumps(flat)) == flat


def test_two_models_differ_in_their_digest_alone():
    subject = settled_config("jamba-tiny-grow")
    info = replace(subject.model.info, hf={**subject.model.info.hf, "rms_norm_eps": 0.5})
    other = replace(subject, model=replace(subject.model, info=info))
    one, two = flatten(subject), flatten(other)
    assert {name for name in one if one[name] != two[name]} == {"model.info"}


def test_holders_have_names():
    assert View(role="front end", fields={}).holder == "front end"
    assert View(role="front end", engine=1, fields={}).holder == "front end on engine 1"
    assert View(role="engine core", engine=0, fields={}).holder == "engine core 0"
    assert View(role="worker", engine=0, rank=1, fields={}).holder == "worker 0.1"
    assert View(role="metrics", engine=1, fields={}).holder == "metrics of engine 1"
