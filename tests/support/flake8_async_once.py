"""flake8-async as a program, with one computation of positions for each file.

It may rewrite what it checks, so it computes anew, before each of its visitors, where each node of
the file is. That is half of its time; nothing is rewritten here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import flake8_async
import libcst
from flake8_async import runner


def run(self: Any) -> Iterable[Any]:
    """What ``Flake8AsyncRunner_cst.run`` does, if no visitor changes the module."""
    assert not self.options.autofix_codes
    wrapper = libcst.MetadataWrapper(self.module, unsafe_skip_copy=True)
    for visitor in (*self.utility_visitors, *self.visitors):
        wrapper.visit(visitor)
    yield from self.state.problems
    self.noqas = self.state.noqas


if __name__ == "__main__":
    runner.Flake8AsyncRunner_cst.run = run
    sys.exit(flake8_async.main())
