"""Computes rates and histories of a broker's counters between snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ._api_times import ApiTimes
from ._history import History, Rate
from ._rows import ApiRow, CloseReasonRow, ProcessorRow, row_factory
from ._snapshot import BrokerSnapshot

#: The names of a processor's rates, each with the name of the counter.
_PROCESSOR_RATES = (
    ("request", "requests"),
    ("response", "responses"),
    ("bytes_received", "bytes_received"),
    ("bytes_sent", "bytes_sent"),
)
_processor = row_factory(ProcessorRow)


class BrokerRates:
    """The values that depend on two consecutive snapshots of one broker.

    For each snapshot, call :meth:`begin` first, and then each other method at most once.
    """

    def __init__(self) -> None:
        self._apis: dict[str, ApiTimes] = {}
        self._processors: dict[int, History] = {}
        self._rates: dict[object, Rate] = {}
        # When the broker was read last, and its uptime then.
        self._seen: tuple[float | None, float | None] = (None, None)

    def begin(self, at: float, uptime: float | None) -> None:
        """Drop the kept counters if the broker was restarted.

        A restart cannot be detected from the counters, because the new counters may already exceed
        the old ones. A restart also changes the clock, which starts at an arbitrary time in each
        trio loop.

        Args:
            at: the time of the new snapshot in seconds on the broker's clock.
            uptime: the uptime of the broker in seconds; None if it is not reported.
        """
        before_at, before_uptime = self._seen
        self._seen = at, uptime
        if before_at is None or uptime is None or before_uptime is None:
            return
        if at < before_at or uptime < before_uptime or at - uptime > before_at:
            for kept in (self._rates, self._apis, self._processors):
                kept.clear()

    def rate(self, of: object, at: float, count: float) -> float | None:
        """Return a counter's rate per second, or None if there is no earlier count.

        Args:
            of: the key that identifies the counter.
            at: the time in seconds on the broker's clock.
            count: the value of the counter.
        """
        rate = self._rates.get(of)
        if rate is None:
            rate = self._rates[of] = Rate()
        return rate.update(at, count)

    def apis(self, snapshot: BrokerSnapshot) -> dict[str, ApiRow] | None:
        """Return request counts and times, keyed by API name; None if the broker reports none.

        Raises:
            MALFORMED: the entries are in an unknown format.
        """
        if "apis" not in snapshot.about:
            return None
        rows = {}
        for values in snapshot.about["apis"]:
            name = values["name"]
            times = self._apis.setdefault(name, ApiTimes(name))
            rows[name] = times.update(snapshot.at, values)
        return rows

    def processors(self, snapshot: BrokerSnapshot) -> dict[int, ProcessorRow]:
        """Return the network processors, keyed by number.

        Raises:
            MALFORMED: the entries are in an unknown format.
        """
        rows, at = {}, snapshot.at
        for values in snapshot.about.get("processors", ()):
            id = values["id"]
            history = self._processors.setdefault(id, History())
            rates = {
                f"{rate}_rate": self.rate(("processor", id, count), at, values[count])
                for rate, count in _PROCESSOR_RATES
            }
            if rates["request_rate"] is not None:
                history.add(at, rates["request_rate"])
            rows[id] = _processor({**values, **rates, "history": history})
        return rows

    def close_reasons(self, snapshot: BrokerSnapshot) -> dict[str, CloseReasonRow]:
        """Return the number and rate of closed connections, keyed by the name of the reason.

        Raises:
            MALFORMED: the entries are in an unknown format.
        """
        return {
            reason: CloseReasonRow(reason, count, self.rate(("closed", reason), snapshot.at, count))
            for reason, count in snapshot.about.get("closed", {}).items()
        }

    # While the broker cannot be read, counts stay as they are, and rates are unknown.

    def unknown_apis(self, rows: Mapping[str, ApiRow]) -> dict[str, ApiRow]:
        """Return the rows without rates, and end their histories."""
        # A broker that came back with a list in another format leaves rows without a history.
        return {
            name: (self._apis.get(name) or ApiTimes(name)).mark_unknown(row)
            for name, row in rows.items()
        }

    def unknown_processors(self, rows: Mapping[int, ProcessorRow]) -> dict[int, ProcessorRow]:
        """Return the rows without rates, and end their histories."""
        for history in self._processors.values():
            history.mark_unknown()
        unknown: dict[str, Any] = {f"{rate}_rate": None for rate, _ in _PROCESSOR_RATES}
        return {id: attrs.evolve(row, **unknown) for id, row in rows.items()}
