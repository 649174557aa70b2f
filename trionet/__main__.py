"""Implements ``python -m trionet`` and the script ``trionet``, which run the command."""

import sys


def main() -> int:
    """Run the command, and return its exit status: 130 also if Ctrl-C interrupts the imports."""
    try:
        from trionet.cli.main import main as run
        from trionet.cli.terminal._streams import prepare_streams

        prepare_streams()
    except KeyboardInterrupt:
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
