"""`python -m support.job MODULE [ARGUMENT]...`: a job that SIGTERM ends as Ctrl-C does.

By itself SIGTERM ends a Python at once: no `finally` is left to stop the brokers, and whatever else
it has started in sessions of their own.
"""

from __future__ import annotations

import runpy
import signal
import sys
from types import FrameType

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Ending:
    """What ends this process as Ctrl-C does, from now on.

    Attributes:
        number: of the signal that came last; SIGINT as long as it was none of these.
    """

    def __init__(self) -> None:
        self.number: int = signal.SIGINT
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # As a script's `job &` has it: what ends us like Ctrl-C would end nothing.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        for each in _SIGNALS:
            if signal.getsignal(each) is not signal.SIG_IGN:
                signal.signal(each, self._end)
            else:
                # As nohup has it, and as it stays. But a child inherits what is ignored, and then
                # ignores what a test sends it; handlers it does not inherit.
                signal.signal(each, _ignore)

    def _end(self, number: int, _frame: FrameType | None) -> None:
        self.number = number
        # Not raised here: where trio runs, its own handler knows where KeyboardInterrupt may be.
        signal.raise_signal(signal.SIGINT)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    pass


def main(arguments: list[str]) -> None:
    """Run the job; the exit status is its own, or tells of the signal."""
    ending = Ending()
    sys.argv = arguments
    try:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    except* KeyboardInterrupt:
        sys.exit(128 + ending.number)


if __name__ == "__main__":
    main(sys.argv[1:])
