"""`python -m staticfire` is the command `staticfire`."""

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109 -- light
    del sys.path[0]  # `-m` puts the current folder there; what lies in it is read and never run

from staticfire.harness.cli import main

if __name__ == "__main__":
    sys.exit(main())
