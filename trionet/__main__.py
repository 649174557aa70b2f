"""Implements ``python -m trionet``, which runs the ``trionet`` command."""

import sys

from trionet.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
