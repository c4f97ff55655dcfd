"""`python -m staticfire` is the command `staticfire`."""

import sys

from staticfire.harness.cli import main

if __name__ == "__main__":
    sys.exit(main())
