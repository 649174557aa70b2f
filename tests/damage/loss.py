"""`python3 tests loss [--rounds N] [--seed N]`."""

from __future__ import annotations

import sys

from damage.program import run
from damage.strike import take_away

DESCRIPTION = (
    "A file of a broker's folder is removed, emptied or cut, or a partition's folder is removed: "
    "what is missing is reported at the next start, and no offset is given again."
)

if __name__ == "__main__":
    sys.exit(run("loss", DESCRIPTION, take_away, sys.argv[1:]))
