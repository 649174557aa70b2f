"""``python -m trionet`` is the ``trionet`` command."""

import sys

from trionet.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
