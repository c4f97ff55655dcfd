"""Every place of the product that starts a process is known, and says why the process runs nothing of the folder."""

import ast

STARTERS = {"Popen", "run", "call", "check_call", "check_output"}
OTHER = {
    "get_context", "ProcessPoolExecutor", "create_subprocess_exec", "create_subprocess_shell", "execv", "execve",
    "execvp", "execvpe", "posix_spawn", "posix_spawnp", "spawnv", "spawnve", "system", "popen",
}  # fmt: skip

KNOWN = {
    "engine/process/child.py": "Popen: our interpreter; PYTHONSAFEPATH, and the parent's path without the empty entry",
    "harness/cli/annotate.py": "run: buildkite-agent, no Python",
    "harness/pipeline/changes.py": "run: git, no Python",
    "harness/pipeline/local.py": "Popen: the user's own commands, which are what is asked for",
    "harness/probe/vllm/look.py": "Popen: isolation.environment, in an empty folder",
    "harness/probe/vllm/process.py": "Popen: isolation.environment, in a folder of the cache",
    "harness/run/process.py": "Popen: our interpreter; worker_environment sets PYTHONSAFEPATH",
    "harness/scan/pool.py": "ProcessPoolExecutor: under isolation.safe_path",
    "harness/scan/scan.py": "get_context: started by scan/pool.py",
    "harness/sync/source/reading.py": "get_context: started by scan/pool.py",
    "harness/sync/vllm/engine.py": "Popen: isolation.environment, in an empty folder",
    "kernels/budgets/compile.py": "Popen: our interpreter; child_environment sets PYTHONSAFEPATH",
    "kernels/budgets/read.py": "run: the disassembler of Triton's wheel, no Python",
}


def starts(source: str) -> set[str]:
    """Names of the calls in a module that start a process."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Attribute(value=ast.Name(id="subprocess"), attr=name) if name in STARTERS:
                    found.add(name)
                case ast.Attribute(attr=name) | ast.Name(id=name) if name in OTHER or name == "Popen":
                    found.add(name)
    return found


def test_no_process_is_started_elsewhere(repo_root):
    files = [path for folder in ("engine", "harness", "kernels") for path in (repo_root / folder).rglob("*.py")]
    found = {path.relative_to(repo_root).as_posix(): starts(path.read_text()) for path in files}
    assert {path: next(iter(names)) for path, names in found.items() if names} == {
        path: why.partition(":")[0] for path, why in KNOWN.items()
    }


def test_a_start_is_seen():
    assert starts("import subprocess\nsubprocess.run(['python'])") == {"run"}
    assert starts("from subprocess import Popen\nPopen(['python'])") == {"Popen"}
    assert starts("import os\nos.execvp('python', [])") == {"execvp"}
