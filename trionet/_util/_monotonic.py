"""The system's monotonic clock, where tools that stop a program's clock do not reach it.

The problem: a test stops the clock of the program under test, while a broker runs in another thread
of the same process. freezegun replaces the functions of the :mod:`time` module there, and in every
module that has imported them by name, so that the broker's times jump back and forth, and calls
fail when a test ends meanwhile.

The choice: the functions of another instance of the module, which no other module has. They are as
fast as the others, and real even if this module is imported while time stands still.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from time import perf_counter, perf_counter_ns
else:
    _spec = importlib.util.find_spec("time")
    _time = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_time)
    perf_counter, perf_counter_ns = _time.perf_counter, _time.perf_counter_ns

__all__ = ["perf_counter", "perf_counter_ns"]
