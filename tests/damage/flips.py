"""`python3 tests flips [--rounds N] [--seed N]`."""

from __future__ import annotations

import sys

from damage.program import run
from damage.strike import flip

DESCRIPTION = (
    "A bit or a byte in a file of a broker's folder is flipped: it is found at the next start, or "
    "by the reader's CRC."
)

if __name__ == "__main__":
    sys.exit(run("flips", DESCRIPTION, flip, sys.argv[1:]))
