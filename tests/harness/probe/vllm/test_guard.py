"""What a question names is not touched by the engine: no module, file, folder, program or machine."""

import pytest

from staticfire.harness.probe.base import Accepted, Crashed, Question

MARK = "open({marker!r}, 'w').close()\n"


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "marker"


@pytest.fixture
def installed(toy, marker):
    """A module in the engine's own environment, that leaves a mark when it is imported."""
    for name in ("evil", "wicked/__init__", "wicked/inner"):
        path = toy.parent / "tree" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(MARK.format(marker=str(marker)))
    return "evil"


@pytest.mark.parametrize("named", ["evil", "wicked", "wicked.inner", "wicked.inner:Class", "evil:Class"])
@pytest.mark.parametrize("act", ["import", "swallow"])
def test_a_module_that_is_named_is_not_imported(probe, model, marker, installed, act, named):
    outcome = probe(use_cache=False).ask(Question(model(), {"act": act, "named": named}))
    assert not marker.exists()
    assert isinstance(outcome, Crashed) or (act, named) == ("swallow", f"{named.partition(':')[0]}:Class")
    if isinstance(outcome, Crashed):
        assert "import" in outcome.detail


def test_a_file_that_is_named_is_not_run(probe, model, marker, tmp_path):
    file = tmp_path / "plugin.py"
    file.write_text(MARK.format(marker=str(marker)))
    outcome = probe(use_cache=False).ask(Question(model(), {"act": "execute", "named": str(file)}))
    assert isinstance(outcome, Crashed)
    assert f"it would run {file}" in outcome.detail
    assert not marker.exists()


def test_a_module_that_a_named_file_names_is_not_imported(probe, model, marker, installed, tmp_path):
    """A file of options or of loggers."""
    (tmp_path / "options.json").write_text('{"handlers": {"h": {"class": "evil.Handler"}}}')
    source = tmp_path / "tree" / "vllm" / "engine" / "arg_utils.py"
    source.write_text(source.read_text().replace('self.named.partition(":")[0]', '"evil"'))
    named = str(tmp_path / "options.json")
    outcome = probe(use_cache=False).ask(Question(model(), {"act": "import", "named": named}))
    assert isinstance(outcome, Crashed)
    assert not marker.exists()


def test_a_file_behind_a_link_is_not_run_either(probe, model, marker, tmp_path):
    file = tmp_path / "plugin.py"
    file.write_text(MARK.format(marker=str(marker)))
    (tmp_path / "link.py").symlink_to(file)
    outcome = probe(use_cache=False).ask(Question(model(), {"act": "execute", "named": str(tmp_path / "link.py")}))
    assert isinstance(outcome, Crashed)
    assert not marker.exists()


@pytest.mark.parametrize("act", ["write", "note"])
def test_nothing_is_written_where_a_question_says(probe, model, act, tmp_path):
    named = tmp_path / "named"
    outcome = probe(use_cache=False).ask(Question(model(), {"act": act, "named": str(named)}))
    assert isinstance(outcome, Crashed)
    assert "it would write" in outcome.detail
    assert not named.exists()


def test_a_program_that_is_named_is_not_started(probe, model, marker, tmp_path):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\n")
    program.chmod(0o755)
    outcome = probe(use_cache=False).ask(Question(model(), {"act": "start", "named": str(program)}))
    assert isinstance(outcome, Crashed)
    assert "it would start" in outcome.detail
    assert not marker.exists()


def test_a_machine_that_is_named_is_not_asked_for(probe, model):
    outcome = probe(use_cache=False).ask(Question(model(), {"act": "reach", "named": "machine.invalid"}))
    assert isinstance(outcome, Crashed)
    assert "it would reach machine.invalid" in outcome.detail


def test_a_model_class_that_is_named_is_imported_in_no_child_process_either(probe, model, marker, installed, tmp_path):
    """What cannot be inspected here is inspected in a child, which no guard watches."""
    registry = tmp_path / "tree" / "vllm" / "model_executor" / "models" / "registry.py"
    registry.write_text(registry.read_text().replace('f"vllm.model_executor.models.{module}"', '"evil"'))
    outcome = probe(use_cache=False).ask(Question(model(), {"named": "evil:Model"}))
    assert isinstance(outcome, Crashed)
    assert "it would import evil" in outcome.detail
    assert not marker.exists()


def test_a_module_that_no_question_names_is_imported(probe, model, marker, installed, tmp_path):
    """The control: the guard is about what is named, and the environment is whole."""
    one = probe(use_cache=False)
    refused = one.ask(Question(model(), {"act": "import", "named": "evil"}))
    assert isinstance(refused, Crashed)
    source = tmp_path / "tree" / "vllm" / "engine" / "arg_utils.py"
    source.write_text(source.read_text().replace('self.named.partition(":")[0]', '"evil"'))
    assert isinstance(probe(use_cache=False).ask(Question(model(), {"act": "import"})), Accepted)
    assert marker.exists()


def test_a_folder_that_holds_the_environment_may_be_named(probe, model, tmp_path):
    """`download_dir` or the like may name a folder that the interpreter's own packages lie in."""
    outcome = probe(use_cache=False).ask(Question(model("NeedyForCausalLM"), {"named": str(tmp_path)}))
    assert isinstance(outcome, Accepted)


def test_a_word_that_is_a_module_of_the_engines_requirements_may_be_typed(probe, model):
    outcome = probe(use_cache=False).ask(Question(model(), {"act": "import", "named": "json"}))
    assert isinstance(outcome, Accepted)


def test_the_site_says_nothing_of_where_the_engine_keeps_its_caches(probe, model, tmp_path):
    folder = tmp_path / "cache-of-the-site"
    variables = {"VLLM_CACHE_ROOT": str(folder), "VLLM_CONFIG_ROOT": str(folder), "HF_HOME": str(folder)}
    assert isinstance(probe(use_cache=False).ask(Question(model(), environment=variables)), Accepted)
    assert not folder.exists()
