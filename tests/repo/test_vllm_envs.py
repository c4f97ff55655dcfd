"""tools/vllm_envs.py keeps what only a GPU runs out of the environments, and everything else in."""

import vllm_envs

OLD = """Metadata-Version: 2.1
Name: vllm
Version: 1.0
Requires-Dist: regex
Requires-Dist: openai-harmony>=0.0.3
Requires-Dist: xgrammar<1.0.0,>=0.2.1; platform_machine == "x86_64"
Requires-Dist: torch==2.13.0
Requires-Dist: nvidia-cutlass-dsl[cu13]==4.6.2
Requires-Dist: flashinfer-python==0.6.16
Requires-Dist: pandas; extra == "bench"

A description with a line that looks like one:
Requires-Dist: nonsense
"""
NEW = """Metadata-Version: 2.1
Name: vllm
Version: 2.0
Requires-Dist: regex>=2
Requires-Dist: xgrammar==0.2.8; platform_machine == "x86_64"
Requires-Dist: protobuf>=5.29.6; platform_machine != "s390x"
Requires-Dist: protobuf==7.36.1; platform_machine == "s390x"
Requires-Dist: torchvision==0.29.0
"""


def test_what_only_a_gpu_runs_and_what_only_extras_want_is_left_out():
    assert sorted(vllm_envs.requirements(OLD)) == ["openai-harmony", "regex", "xgrammar"]


def test_markers_are_kept_for_pip_to_decide():
    found = vllm_envs.requirements(NEW)
    assert found["xgrammar"] == 'xgrammar==0.2.8; platform_machine == "x86_64"'
    assert found["protobuf"].splitlines() == [
        'protobuf>=5.29.6; platform_machine != "s390x"',
        'protobuf==7.36.1; platform_machine == "s390x"',
    ]


def test_the_newest_release_decides_and_older_ones_add_what_it_no_longer_wants():
    merged = vllm_envs.merged([vllm_envs.requirements(OLD), vllm_envs.requirements(NEW)]).splitlines()
    assert "regex>=2" in merged
    assert "regex" not in merged
    assert "openai-harmony>=0.0.3" in merged


def test_the_wrapper_puts_one_release_on_the_path_and_is_rewritten_only_when_it_changes(tmp_path):
    first = vllm_envs.write_wrapper("1.0", tmp_path, tmp_path / "a folder" / "vllm-1.0", tmp_path / "bin" / "python")
    text = first.read_text()
    assert f"PYTHONPATH='{tmp_path}/a folder/vllm-1.0' exec" in text
    assert first.stat().st_mode & 0o111
    before = first.stat().st_mtime_ns
    vllm_envs.write_wrapper("1.0", tmp_path, tmp_path / "a folder" / "vllm-1.0", tmp_path / "bin" / "python")
    assert first.stat().st_mtime_ns == before
