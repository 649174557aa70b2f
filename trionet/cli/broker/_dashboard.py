"""``trionet broker --dashboard``: a broker and its dashboard in one process."""

from __future__ import annotations

import logging

from ...broker.run._broker import Broker
from ...dashboard._app import run_dashboard
from ...dashboard.sources._open_source import watch_broker
from ...dashboard.terminal._ansi import is_interactive
from ...errors import ConfigError
from ...metrics._log_ring import LogRing


class BrokerDashboard:
    """A dashboard that shows a broker in this process on the terminal.

    Log lines go to the dashboard. Standard error receives only errors, because the dashboard draws
    over whatever is printed there.

    Args:
        level: the lowest level of log lines to keep.

    Raises:
        ConfigError: there is no terminal.
    """

    def __init__(self, level: int) -> None:
        if not is_interactive():
            raise ConfigError(
                "--dashboard requires a terminal on standard input and output; without one, connect"
                " from another terminal: trionet dashboard HOST:PORT"
            )
        self._log = LogRing(level)
        logging.getLogger("trionet").addHandler(self._log)
        for handler in logging.getLogger().handlers:
            handler.setLevel(logging.ERROR)

    async def __call__(self, broker: Broker) -> int:
        """Show the broker until the user quits or a signal arrives.

        Returns:
            0, or 128 plus the number of the signal.
        """
        with watch_broker(broker, log=self._log) as source:
            return await run_dashboard(source)
