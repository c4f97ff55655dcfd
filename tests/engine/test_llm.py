"""The front end: what it returns, what it refuses, and that a refusal or a failure leaves nothing behind."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from protocol_model import interrupt_at
from staticfire.engine.config import ConfigError
from staticfire.engine.errors import CheckpointError, EngineError, RequestError
from staticfire.engine.llm import LLM
from staticfire.engine.observer import Observer
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import SchedulerOutput, StepOutput

pytestmark = pytest.mark.engine

PROMPT = [5, 6, 7, 8]
FREE = SamplingParams(max_tokens=6, ignore_eos=True)


@pytest.fixture(scope="module")
def llm(jamba: Path) -> LLM:
    return LLM(jamba, dtype="float32", max_model_len=128, max_num_batched_tokens=128)


@pytest.fixture(scope="module")
def with_tokenizer(jamba: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    folder = Path(shutil.copytree(jamba, tmp_path_factory.mktemp("text") / "model"))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<eos>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(["the quick brown fox jumps over the lazy dog"], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_outputs_come_in_the_order_of_the_prompts(llm: LLM):
    prompts = [[9] * n for n in (40, 3, 90, 1)]
    outputs = llm.generate(prompts, [SamplingParams(max_tokens=n, ignore_eos=True) for n in (9, 1, 2, 5)])
    assert [output.prompt_token_ids for output in outputs] == prompts
    assert [len(output.outputs[0].token_ids) for output in outputs] == [9, 1, 2, 5]
    assert {output.outputs[0].finish_reason for output in outputs} == {"length"}
    assert len({output.request_id for output in outputs}) == 4


def test_a_single_prompt_and_no_parameters(llm: LLM):
    (output,) = llm.generate(PROMPT)
    assert output.prompt_token_ids == PROMPT
    assert output.prompt is None
    assert 1 <= len(output.outputs[0].token_ids) <= 16
    assert output.outputs[0].logprobs is None
    assert output.prompt_logprobs is None
    assert llm.generate([]) == []


def test_stats_add_up(llm: LLM):
    (output,) = llm.generate([[11] * 30], FREE)
    covered = sum(length for _, length in output.stats.chunks)
    assert covered == 30 + 6 - 1, "the last token is never computed"
    assert output.stats.num_preemptions == 0


def test_text_in_text_out(with_tokenizer: Path):
    with LLM(with_tokenizer, dtype="float32") as llm:
        assert llm.tokenizer is not None
        (output,) = llm.generate("the quick dog", FREE)
        (by_ids,) = llm.generate([llm.tokenizer.encode("the quick dog")], FREE)
        assert llm.tokenizer.decode(output.prompt_token_ids) == "the quick dog"
        assert output.outputs[0].text == llm.tokenizer.decode(output.outputs[0].token_ids)
    assert output.prompt == "the quick dog"
    assert by_ids.outputs[0].token_ids == output.outputs[0].token_ids


def test_a_damaged_tokenizer(with_tokenizer: Path, tmp_path: Path):
    folder = Path(shutil.copytree(with_tokenizer, tmp_path / "model"))
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"tokenizer.json: not a tokenizer"):
        LLM(folder, dtype="float32")


def test_text_that_is_none(with_tokenizer: Path):
    with (
        LLM(with_tokenizer, dtype="float32") as llm,
        pytest.raises(RequestError, match=r"prompt 1: '\\ud800' at index 2"),
    ):
        llm.generate(["the", "a \ud800", "dog"])


def test_text_needs_a_tokenizer(llm: LLM):
    with pytest.raises(RequestError, match=r"no tokenizer.json"):
        llm.generate(["text"])


def test_end_of_sequence_ends_unless_ignored(jamba: Path, tmp_path: Path):
    """The token that the model picks third is made its end of sequence."""
    folder = Path(shutil.copytree(jamba, tmp_path / "model"))
    with LLM(folder, dtype="float32") as llm:
        tokens = llm.generate([PROMPT], FREE)[0].outputs[0].token_ids
    third = tokens[2]
    expected = tokens[: tokens.index(third) + 1]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [third]}))
    with LLM(folder, dtype="float32") as llm:
        (stopped,) = llm.generate([PROMPT], SamplingParams(max_tokens=6))
        (ignored,) = llm.generate([PROMPT], FREE)
        (by_id,) = llm.generate([PROMPT], SamplingParams(max_tokens=6, ignore_eos=True, stop_token_ids=(third,)))
    assert stopped.outputs[0].token_ids == expected
    assert stopped.outputs[0].finish_reason == "stop"
    assert ignored.outputs[0].token_ids == tokens
    assert by_id.outputs[0].token_ids == expected


@pytest.mark.parametrize("content", ["{", "[" * 100_000, '{"eos_token_id": "x"}'])
def test_a_broken_generation_config(jamba: Path, tmp_path: Path, content: str):
    folder = Path(shutil.copytree(jamba, tmp_path / "model"))
    (folder / "generation_config.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"not JSON|eos_token_id='x'"):
        LLM(folder, dtype="float32")


def test_a_generation_config_that_is_a_folder(jamba: Path, tmp_path: Path):
    folder = Path(shutil.copytree(jamba, tmp_path / "model"))
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "generation_config.json").mkdir()
    with pytest.raises(CheckpointError, match=r"generation_config.json: cannot be read"):
        LLM(folder, dtype="float32")


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("rms_norm_eps", "x", "rms_norm_eps='x' must be a number"),
        ("rms_norm_eps", -1, "rms_norm_eps=-1 must be a number"),
        ("num_experts_per_tok", 100, "num_experts_per_tok=100 is more than num_experts=4"),
    ],
)
def test_a_config_that_makes_no_sense(jamba: Path, tmp_path: Path, name: str, value: object, wanted: str):
    folder = Path(shutil.copytree(jamba, tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, name: value}))
    with pytest.raises(EngineError, match=wanted):
        LLM(folder, dtype="float32")


def test_the_context_ends_a_request(llm: LLM):
    (output,) = llm.generate([[7] * 120], SamplingParams(max_tokens=50, ignore_eos=True))
    assert len(output.outputs[0].token_ids) == 8
    assert output.outputs[0].finish_reason == "length"


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "empty prompt": ([[]], {}, "prompt is empty"),
    "prompt as long as the context": ([[5] * 128], {}, "128 tokens; max_model_len=128 leaves room for at most 127"),
    "prompt longer than the context": ([[5] * 500], {}, "500 tokens; max_model_len=128"),
    "token outside the vocabulary": ([[5, 512]], {}, r"token 512 at index 1 is not in \[0, 512\)"),
    "negative token": ([[-1]], {}, "token -1 at index 0"),
    "token that is no int": ([[5, "6"]], {}, "prompt 0: '6' is a str"),
    "token that is a bool": ([[True]], {}, "True is a bool"),
    "forced token outside the vocabulary": (
        [PROMPT],
        {"sampling_params": SamplingParams(forced_token_ids=(1, 999))},
        "forced_token_ids: token 999 at index 1",
    ),
    "more forced tokens than the context holds": (
        [PROMPT],
        {"sampling_params": SamplingParams(forced_token_ids=(1,) * 200)},
        "4 prompt and 200 forced tokens are more than max_model_len=128",
    ),
    "duplicate id in one call": ([PROMPT, PROMPT], {"request_ids": ["a", "a"]}, "request 'a': the id is in use"),
    "too few ids": ([PROMPT, PROMPT], {"request_ids": ["a"]}, "2 prompts, but 1 request_ids"),
    "too few parameters": ([PROMPT, PROMPT], {"sampling_params": [FREE]}, "2 prompts, but 1 sampling_params"),
}


REFUSED |= {
    "nothing": (None, {}, "a NoneType is neither a text nor a list of prompts"),
    "bytes": (b"text", {}, "a bytes is neither"),
    "a dict": ({"prompt": "text"}, {}, "a dict is neither"),
    "bytes in a list": ([b"text"], {}, "prompt 0: a bytes is neither a text nor a list of token ids"),
    "None in a list": ([PROMPT, None], {}, "prompt 1: a NoneType is neither"),
    "a prompt and a token": ([PROMPT, 5], {}, "prompt 1: a int is neither"),
    "one prompt of floats": ([1.0, 2.0], {}, "prompt 0: 1.0 is a float"),
    "parameters that are none": (PROMPT, {"sampling_params": "greedy"}, "sampling_params: must be a sequence"),
    "parameters that are a dict": (PROMPT, {"sampling_params": {"seed": 1}}, "sampling_params: must be a sequence"),
    "None among the parameters": ([PROMPT], {"sampling_params": [None]}, r"sampling_params\[0\]=None: must be a Sampl"),
    "ids that are one text": ([PROMPT, PROMPT], {"request_ids": "ab"}, "request_ids: must be a sequence of str"),
    "an id that is no text": ([PROMPT], {"request_ids": [3]}, r"request_ids\[0\]=3: must be a str"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_requests(llm: LLM, name: str):
    prompts, keywords, wanted = REFUSED[name]
    with pytest.raises(RequestError, match=wanted):
        llm.generate(prompts, **keywords)
    assert not llm.core.has_unfinished()


def test_one_bad_prompt_runs_none_and_all_are_named(llm: LLM):
    steps = llm.core.scheduler._step
    with pytest.raises(RequestError) as caught:
        llm.generate([PROMPT, [], [5] * 300, [600]], request_ids=["good", "empty", "long", "alien"])
    for text in ("'empty'", "'long'", "'alien'"):
        assert text in str(caught.value)
    assert "'good'" not in str(caught.value)
    assert not llm.core.has_unfinished()
    assert llm.core.scheduler._step == steps


def test_parameters_without_meaning():
    with pytest.raises(RequestError, match=r"max_tokens=0: must be at least 1; temperature=-1"):
        SamplingParams(max_tokens=0, temperature=-1)


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "max_tokens": (None, 2.5, "3", math.inf, True),
        "temperature": (None, "1", math.nan, math.inf, True),
        "top_p": (None, "1", math.nan, 0, 1.5),
        "top_k": (None, 1.5, math.nan, -1, True),
        "seed": (1.5, "1", math.nan, True),
        "logprobs": (1.5, True, -1),
        "prompt_logprobs": (2.5, True, -1),
        "stop_token_ids": (3, "ab", (1.0,), None),
        "forced_token_ids": ((), 7, "abc", (True,)),
        "priority": (None, math.nan, "a"),
        "ignore_eos": ("yes", None),
    }.items(),
)
def test_parameters_of_the_wrong_kind(name: str, values: tuple[object, ...]):
    """Found when they are made, with their name, not somewhere below while others are being served."""
    for value in values:
        with pytest.raises(RequestError, match=f"^{name}="):
            SamplingParams(**cast("dict[str, Any]", {name: value}))


class Aborter(Observer):
    """Aborts a request after some steps."""

    llm: LLM

    def __init__(self, request_id: str, after: int) -> None:
        self.request_id, self.left = request_id, after

    def step(self, output: SchedulerOutput, step_output: StepOutput) -> None:
        self.left -= 1
        if self.left == 0:
            self.llm.abort([self.request_id, "unknown"])


def test_an_aborted_request_has_what_it_had(jamba: Path):
    aborter = Aborter("b", after=3)
    with LLM(jamba, dtype="float32", observer=aborter) as llm:
        aborter.llm = llm
        params = SamplingParams(max_tokens=6, ignore_eos=True, logprobs=0)
        a, b, c = llm.generate([PROMPT] * 3, params, request_ids=["a", "b", "c"])
        assert not llm.core.has_unfinished()
        llm.core.scheduler.check_integrity()
        again = llm.generate([PROMPT], params, request_ids=["b"])[0]
    assert a.outputs[0].finish_reason == c.outputs[0].finish_reason == "length"
    assert b.outputs[0].finish_reason == "abort"
    assert b.outputs[0].token_ids == a.outputs[0].token_ids[: len(b.outputs[0].token_ids)]
    assert 1 <= len(b.outputs[0].token_ids) <= 3
    assert again.outputs[0].token_ids == a.outputs[0].token_ids


class Breaker(Observer):
    """Fails once, in the middle of a step."""

    left = 2

    def before_forward(self, output: SchedulerOutput, caches: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_a_failing_step_leaves_the_engine_usable(jamba: Path):
    with LLM(jamba, dtype="float32", observer=Breaker()) as llm, LLM(jamba, dtype="float32") as sound:
        with pytest.raises(KeyboardInterrupt):
            llm.generate([PROMPT, [9, 9]], FREE, request_ids=["a", "b"])
        assert not llm.core.has_unfinished()
        llm.core.scheduler.check_integrity()
        after = llm.generate([PROMPT, [9, 9]], FREE, request_ids=["a", "b"])
        assert [o.outputs[0].token_ids for o in after] == [
            o.outputs[0].token_ids for o in sound.generate([PROMPT, [9, 9]], FREE)
        ]


def interrupted(llm: LLM, at: int) -> bool:
    """Generate, with an interrupt before line `at` of the engine's own code; False if it has fewer."""
    params = SamplingParams(max_tokens=2, ignore_eos=True)
    return interrupt_at(at, lambda: llm.generate([PROMPT * 5, PROMPT * 9], params))


def test_an_interrupt_anywhere_leaves_the_engine_usable(jamba: Path):
    params = SamplingParams(max_tokens=4, ignore_eos=True)
    with LLM(jamba, dtype="float64", block_size=16) as llm:

        def tokens() -> list[list[int]]:
            return [output.outputs[0].token_ids for output in llm.generate([PROMPT * 5, PROMPT * 9], params)]

        expected = tokens()
        at = 1
        while interrupted(llm, at):
            assert tokens() == expected, at
            assert not llm.core.has_unfinished(), at
            llm.core.scheduler.check_integrity()
            assert llm.core.scheduler.cache.pool.num_free == llm.core.scheduler.cache.pool.num_usable, at
            at += 13
        assert at > 1000, "too few lines were traced"


class Reentrant(Observer):
    """Asks for more in the middle of a step."""

    llm: LLM
    errors: tuple[str, ...] = ()

    def before_forward(self, output: SchedulerOutput, caches: Any) -> None:
        for again in (lambda: self.llm.generate([PROMPT]), self.llm.close):
            with pytest.raises(EngineError) as caught:
                again()
            self.errors += (str(caught.value),)


def test_one_call_at_a_time(jamba: Path):
    observer = Reentrant()
    with LLM(jamba, dtype="float32", observer=observer) as llm:
        observer.llm = llm
        llm.generate([PROMPT], SamplingParams(max_tokens=1))
    assert len(observer.errors) == 2
    assert all("generating already" in error for error in observer.errors)


class Nan(Observer):
    """Spoils the recurrent state of the second step."""

    def before_forward(self, output: SchedulerOutput, caches: Any) -> None:
        if output.step == 1:
            caches.pool.fill_(0xFF)


def test_logits_that_are_not_finite_are_reported_not_sampled(jamba: Path):
    with LLM(jamba, dtype="float32", num_gpu_blocks_override=300, observer=Nan()) as llm:
        with pytest.raises(EngineError, match=r"not finite for request\(s\) x"):
            llm.generate([PROMPT], FREE, request_ids=["x"])
        assert not llm.core.has_unfinished()


def test_a_closed_engine_refuses_and_closes_again(jamba: Path):
    llm = LLM(jamba, dtype="float32")
    llm.close()
    llm.close()
    llm.abort(["anything"])
    with pytest.raises(EngineError, match="closed"):
        llm.generate([PROMPT])


def test_unknown_keyword_names_the_nearest(jamba: Path):
    with pytest.raises(ConfigError, match="enable_prefix_caching"):
        LLM(jamba, enable_prefix_cachin=True)


def test_broken_rules_are_refused_before_weights_are_read(jamba: Path, tmp_path: Path):
    folder = tmp_path / "model"
    folder.mkdir()
    shutil.copy(jamba / "config.json", folder)
    with pytest.raises(ConfigError, match="chunked"):
        LLM(folder, mamba_cache_mode="align", enable_prefix_caching=True, enable_chunked_prefill=False)
    with pytest.raises(CheckpointError, match=r"model.safetensors: no such file"):
        LLM(folder)


def test_pipeline_stages_are_refused(jamba: Path):
    with pytest.raises(EngineError, match=r"SF507 .*pipeline_parallel_size=2"):
        LLM(jamba, pipeline_parallel_size=2)


def test_a_family_that_cannot_run_is_refused(tmp_path: Path):
    from transformers import Qwen3NextConfig

    config = Qwen3NextConfig(num_hidden_layers=4).to_dict()
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["Qwen3NextForCausalLM"]}))
    with pytest.raises(EngineError, match=r"Qwen3NextForCausalLM.*cannot run"):
        LLM(tmp_path)


def test_dummy_weights_need_no_checkpoint_and_follow_the_seed(jamba: Path, tmp_path: Path):
    shutil.copy(jamba / "config.json", tmp_path)

    def tokens(seed: int) -> list[int]:
        with LLM(tmp_path, dtype="float32", load_format="dummy", seed=seed) as llm:
            return llm.generate([PROMPT], FREE)[0].outputs[0].token_ids

    assert tokens(1) == tokens(1)
    assert tokens(1) != tokens(2)


def test_unseeded_sampling_follows_the_engine_seed(jamba: Path):
    params = SamplingParams(max_tokens=12, temperature=1.0, ignore_eos=True)

    def tokens(seed: int) -> list[list[int]]:
        with LLM(jamba, dtype="float32", seed=seed) as llm:
            return [output.outputs[0].token_ids for output in llm.generate([PROMPT, PROMPT], params)]

    first = tokens(1)
    assert first == tokens(1)
    assert first[0] != first[1], "each request draws for itself"
    assert first != tokens(2)


def test_priority_runs_first(make_checkpoint: Callable[..., Path]):
    order: list[str] = []

    class Watch(Observer):
        def step(self, output: SchedulerOutput, step_output: StepOutput) -> None:
            order.extend(chunk.request_id for chunk in output.chunks if chunk.start == 0)

    with LLM(
        make_checkpoint("jamba"), dtype="float32", observer=Watch(), max_num_seqs=1, scheduling_policy="priority"
    ) as llm:
        params = [SamplingParams(max_tokens=2, priority=n, ignore_eos=True) for n in (2, 0, 1)]
        llm.generate([PROMPT] * 3, params, request_ids=["low", "high", "middle"])
    assert order == ["high", "middle", "low"]


def test_float64_is_float64_all_the_way(jamba: Path):
    with LLM(jamba, dtype="float64") as llm:
        caches = llm.core.runner.caches
        assert {view.dtype for view in caches.attention.values()} == {torch.float64}
        assert {state.dtype for states in caches.states.values() for state in states} == {torch.float64}
        (output,) = llm.generate([PROMPT], SamplingParams(max_tokens=1, logprobs=0))
    assert output.outputs[0].logprobs is not None
    logprob = output.outputs[0].logprobs[0].logprob
    assert logprob != torch.tensor(logprob, dtype=torch.float32).item(), "rounded to float32 on the way"
