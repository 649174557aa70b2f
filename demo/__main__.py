"""``python3 demo``: set up what the demo needs, then run it; arguments are the demo's."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / ".ci"))

from environment import run_inside

if __name__ == "__main__":
    # -P: a folder called "demo" where the user happens to be must not win.
    run_inside("demo", "-P", "-m", "demo.flights", *sys.argv[1:])
