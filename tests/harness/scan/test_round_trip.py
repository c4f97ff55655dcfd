"""Keywords written down in any form are read back as they were."""

import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.scan.flags import PLACEHOLDER
from staticfire.harness.scan.scan import scan

NAMES = ("max_model_len", "block_size", "dtype", "enable_prefix_caching", "enable_chunked_prefill", "hf_overrides",
         "gpu_memory_utilization", "tokenizer", "enforce_eager", "seed", "speculative_config")  # fmt: skip
WORDS = st.text(st.sampled_from("abcXYZ/._ \"'$\\#é"), min_size=1, max_size=12).filter(
    lambda text: not text.startswith("-") and text.strip() == text and not PLACEHOLDER.fullmatch(text)
)
JSON = st.dictionaries(
    st.text("abc_", min_size=1, max_size=5), st.one_of(st.integers(-9, 9), st.booleans(), st.text("xyz ", max_size=4)), min_size=1,  # noqa: E501
    max_size=3,
)  # fmt: skip
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "max_model_len": st.integers(1, 10**6),
    "block_size": st.integers(1, 512),
    "dtype": st.sampled_from(["auto", "half", "float32"]),
    "enable_prefix_caching": st.booleans(),
    "enable_chunked_prefill": st.booleans(),
    "hf_overrides": JSON,
    "gpu_memory_utilization": st.floats(0.1, 1, allow_nan=False).map(lambda value: round(value, 3)),
    "tokenizer": WORDS,
    "enforce_eager": st.just(value=True),
    "seed": st.integers(-5, 5),
    "speculative_config": JSON,
}
KEYWORDS = st.sets(st.sampled_from(NAMES)).flatmap(
    lambda names: st.fixed_dictionaries({name: VALUES[name] for name in sorted(names)})
)


def flags(keywords: dict[str, Any], *, joined: bool) -> list[str]:
    words = []
    for name, value in keywords.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
            continue
        text = json.dumps(value) if isinstance(value, dict) else str(value)
        words.extend([f"--{flag}={text}"] if joined else [f"--{flag}", text])
    return words


def read(name: str, text: str) -> tuple[Any, dict[str, Any]]:
    with TemporaryDirectory() as folder:
        (Path(folder) / name).write_text(text, encoding="utf-8")
        (site,) = scan([folder]).sites
        (item,) = site.configurations
        assert item.full
        return item.model, {key: value.value for key, value in item.keywords.items()}


@given(KEYWORDS, st.sampled_from(["call", "splat", "merge", "update"]))
def test_python(keywords: dict[str, Any], way: str) -> None:
    arguments = ", ".join(f"{name}={value!r}" for name, value in keywords.items())
    body = {
        "call": f"LLM('m/one', {arguments})",
        "splat": f"k = dict({arguments})\n    LLM(model='m/one', **k)",
        "merge": f"k = {{'model': 'm/one'}} | {keywords!r}\n    LLM(**k)",
        "update": f"k = {{}}\n    k.update({keywords!r})\n    LLM('m/one', **k)",
    }[way]
    assert read("test_a.py", f"from vllm import LLM\ndef test_a():\n    {body}\n") == ("m/one", keywords)


@given(KEYWORDS, st.booleans(), st.sampled_from(["whole", "append", "plus"]))
def test_command_list(keywords: dict[str, Any], joined: bool, way: str) -> None:
    words = flags(keywords, joined=joined)
    body = {
        "whole": f"a = {words!r}",
        "append": "a = []\n" + "".join(f"    a.append({word!r})\n" for word in words),
        "plus": f"a = {words[:1]!r} + {words[1:]!r}",
    }[way]
    text = f"from x import RemoteOpenAIServer\ndef test_a():\n    {body}\n    RemoteOpenAIServer('m/one', a)\n"
    assert read("test_a.py", text) == ("m/one", keywords)


@given(KEYWORDS, st.booleans(), st.booleans())
def test_shell(keywords: dict[str, Any], joined: bool, broken: bool) -> None:
    words = [shlex.quote(word) for word in flags(keywords, joined=joined)]
    text = (" \\\n  " if broken else " ").join(["vllm serve m/one", *words])
    assert read("a.sh", f"#!/bin/sh\n{text}\n") == ("m/one", keywords)


@given(KEYWORDS, st.booleans(), st.booleans())
def test_yaml_arguments(keywords: dict[str, Any], joined: bool, flow: bool) -> None:
    document = {"model_name": "m/one", "server_args": flags(keywords, joined=joined)}
    assert read("a.yaml", yaml.safe_dump(document, default_flow_style=flow, allow_unicode=True)) == ("m/one", keywords)


@given(KEYWORDS.filter(lambda keywords: "max_model_len" in keywords))
def test_yaml_mapping(keywords: dict[str, Any]) -> None:
    document = {"model": "m/one", **{name.replace("_", "-"): value for name, value in keywords.items()}}
    assert read("a.yaml", yaml.safe_dump(document, allow_unicode=True)) == ("m/one", keywords)
