"""``python3 docs [OPTION]...``: build the documentation as HTML in build/docs; warnings are errors.

``--online`` also links into the documentation of trio and of Python, which is asked for their
indexes then; other options are sphinx-build's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / ".ci"))

from environment import ROOT, run_inside

HTML = ROOT / "build" / "docs"
STRICT = ("--fail-on-warning", "--keep-going", "--quiet")


def sphinx_options(arguments: list[str]) -> list[str]:
    """What sphinx-build is given for the arguments of ``python3 docs``."""
    passed_on = [each for each in arguments if each != "--online"]
    online = ["--tag", "online"] if "--online" in arguments else []
    return [*STRICT, *online, *passed_on, str(ROOT / "docs"), str(HTML)]


if __name__ == "__main__":
    os.chdir(ROOT)
    # Docstrings and signatures are those of the sources, wherever something is compiled.
    os.environ["TRIONET_PURE"] = "1"
    run_inside("docs", "-m", "sphinx", *sphinx_options(sys.argv[1:]))
