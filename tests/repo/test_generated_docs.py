"""Documents that are made from code say what the code says."""

import subprocess
import sys


def test_the_generated_pages_are_up_to_date(repo_root):
    command = [sys.executable, str(repo_root / "tools" / "generate_docs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
