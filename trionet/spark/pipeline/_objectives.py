"""Service level objectives: what is promised of requests, and how fast the promise is used up.

An objective says which share of the requests to an API, of all clients or of one, must succeed, or
must take no longer than a time. What may fail beyond that is the error budget. A burn rate is how
many times as fast as allowed the budget is used: at 1, it is just used up at the end. As in the
Site Reliability Workbook of Google (chapter 5), a burn rate counts if it is high both over a long
time, so that it matters, and over a short time, so that it goes on (``ALERTS``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from trionet.errors import ConfigError
from trionet.protocol.messages.registry import APIS

from ...protocol.records.columnar._arrow_columns import number_column
from ._estimates import api_name
from ._partials import REQUESTS, SUMS, TIMES, Groups, Numbers, matrix, unfolded
from ._signals import ALL_APIS, FIGURES, KEYS, OBJECTIVE
from .histogram import BUCKETS_MAX, middle

#: The times over which burn rates are computed: the suffix of the column, and the minutes.
WINDOWS: Final[Mapping[str, int]] = {"5m": 5, "30m": 30, "1h": 60, "6h": 360, "3d": 4320}
#: Alerts: the severity, the long and the short time, and the burn rate of both.
ALERTS: Final = (
    ("page", "1h", "5m", 14.4),  # 2 % of the budget of 30 days in an hour
    ("page", "6h", "30m", 6.0),  # 5 % in six hours
    ("ticket", "3d", "6h", 1.0),  # 10 % in three days
)
#: Fewer bad requests than this in the long time are no alert: one of ten is no rate.
BAD_MIN: Final = 10
#: How long the counts of objectives are remembered.
REMEMBERED_MINUTES: Final = max(WINDOWS.values())

_FORM: Final = re.compile(
    r"(?P<api>[^/=]+?)(/(?P<client>[^=]+?))?\s*=\s*(?P<target>\d+(\.\d+)?)\s*%"
    r"(\s+within\s+(?P<time>\d+(\.\d+)?)\s*(?P<unit>us|ms|s))?"
)
_UNITS: Final = {"us": 1, "ms": 1_000, "s": 1_000_000}
_EXAMPLES: Final = "such as 'Produce=99.9%', 'Fetch/shop=99% within 20ms' or '*/*=99.9%'"
_EVERY: Final = "*"


@attrs.frozen
class Objective:
    """An objective.

    Attributes:
        text: its name: as it was given, but without spaces that mean nothing.
        api_key: the API; None for all.
        client_id: the client id; None for all clients together, ``*`` for each client separately.
        target: the share of requests that must be good, between 0 and 1.
        within_us: the broker's time that a good request takes at most, in microseconds; None if a
            request is good that does not fail.
    """

    text: str
    api_key: int | None
    client_id: str | None
    target: float
    within_us: int | None

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Parse ``API[/CLIENT]=SHARE% [within TIME]``, with ``*`` for all APIs or each client.

        Raises:
            ConfigError: the text has another form, the API is unknown, or the share is not between
                0 and 100 %.
        """
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise ConfigError(
                f"--slo {text}: must have the form API[/CLIENT]=SHARE% [within TIME], {_EXAMPLES}"
            )
        target = float(found["target"]) / 100
        if not 0 < target < 1:
            raise ConfigError(
                f"--slo {text}: the share must be between 0 and 100 %, exclusive: 100 % would leave"
                " no error budget"
            )
        api = None if found["api"] == _EVERY else _api_key(text, found["api"])
        name = _EVERY if api is None else api_name(api)
        if found["client"] is not None:
            name += f"/{found['client']}"
        name += f"={found['target']}%"
        within = None
        if found["time"] is not None:
            within = round(float(found["time"]) * _UNITS[found["unit"]])
            name += f" within {found['time']}{found['unit']}"
        return cls(name, api, found["client"], target, within)

    @classmethod
    def parse_all(cls, texts: Iterable[str]) -> tuple[Objective, ...]:
        """Parse several; one that is given twice is one, so that its requests are counted once.

        Raises:
            ConfigError: as :meth:`parse`.
        """
        return tuple(dict.fromkeys(map(cls.parse, texts)))

    def count(self, batch: Any, slow: Numbers | None) -> Iterator[Any]:
        """Yield signals with the requests and the bad requests of each minute, and client.

        Args:
            batch: rows of requests, with the columns of :mod:`._estimates`.
            slow: the number of requests in each row that took too long.
        """
        sums = matrix(batch["sums"], len(SUMS[REQUESTS]))
        requests = sums[:, SUMS[REQUESTS].index("requests")]
        bad = sums[:, SUMS[REQUESTS].index("failed")] if slow is None else slow
        chosen = np.ones(len(bad), bool)
        if self.api_key is not None:
            chosen &= batch["api_key"].to_numpy() == self.api_key
        if self.client_id not in (None, _EVERY):
            chosen &= np.array(batch["client_id"].to_pylist(), object) == self.client_id
        at = np.flatnonzero(chosen)
        if not len(at):
            return
        taken = batch.take(number_column(pa.int64(), at))
        keys = [taken["window"].to_numpy()]
        if self.client_id is not None:
            keys.append(taken["client_id"])
        groups = Groups.by(keys)
        counts = groups.sums(np.stack([requests[at], bad[at]], axis=1))
        yield self._signals(taken, groups.first, counts)

    def _signals(self, batch: Any, first: Numbers, counts: Numbers) -> Any:
        at, length = number_column(pa.int64(), first), len(first)
        api_key = ALL_APIS if self.api_key is None else self.api_key
        clients = pa.nulls(length, pa.string())
        columns = {
            "window": batch["window"].take(at),
            "level": pa.repeat(pa.scalar(OBJECTIVE, pa.int32()), length),
            "api_key": pa.repeat(pa.scalar(api_key, pa.int32()), length),
            "client_id": clients if self.client_id is None else batch["client_id"].take(at),
            "listener": pa.nulls(length, pa.string()),
            "reason": pa.repeat(pa.scalar(self.text), length),
            "requests": number_column(pa.int64(), np.ascontiguousarray(counts[:, 0])),
            "failed": number_column(pa.int64(), np.ascontiguousarray(counts[:, 1])),
        }
        zeros = pa.repeat(pa.scalar(0, pa.int64()), length)
        names = ["window", *KEYS, *FIGURES]
        return pa.RecordBatch.from_arrays([columns.get(name, zeros) for name in names], names=names)


def _api_key(text: str, name: str) -> int:
    keys = {row[1].lower(): key for key, row in APIS.items()}
    if name.lower() not in keys:
        raise ConfigError(f"--slo {text}: {name} is no API; give one such as Produce, or * for all")
    return keys[name.lower()]


@attrs.frozen
class ObjectiveCounter:
    """Counts requests and bad requests by objective; each task passes the rows of its minutes.

    Attributes:
        objectives: the objectives.
    """

    objectives: Sequence[Objective]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield signals of the level ``OBJECTIVE``.

        Args:
            batches: Arrow batches with the columns of :mod:`._estimates`.
        """
        for batch in batches:
            requests = batch.filter(pa.array(batch["kind"].to_numpy() == REQUESTS))
            if not requests.num_rows:
                continue
            for each in self.objectives:
                yield from each.count(requests, _slow(requests, each.within_us))


def _slow(batch: Any, within_us: int | None) -> Numbers | None:
    """Return how many requests of each row took longer, to the precision of the histograms."""
    if within_us is None:
        return None
    of_row, cells, counts = unfolded(batch)
    is_slow = cells // BUCKETS_MAX == TIMES.index("broker")
    is_slow &= middle(cells % BUCKETS_MAX) > within_us
    found = np.bincount(of_row[is_slow], weights=counts[is_slow], minlength=batch.num_rows)
    return found.astype(np.int64)


#: The columns of burn rates, for Spark.
BURN_COLUMNS: Final = (
    "window bigint, objective string, api_key int, api string, client_id string, target double,"
    " requests bigint, bad bigint, "
    + ", ".join(f"burn_{name} double" for name in WINDOWS)
    + ", alert string"
)
_BURN_NAMES: Final = [each.split()[0] for each in BURN_COLUMNS.split(", ")]


@attrs.frozen
class BurnRates:
    """Computes burn rates in a range of minutes; each task passes the signals that it holds.

    A client has no rows of minutes before its first request, nor of those after its last one in
    which no burn rate is above 0: ids of clients that come and go would have most rows.

    Attributes:
        objectives: the objectives; signals of others, of an earlier run, are left out.
        windows: the minutes to compute, ascending.
    """

    objectives: Sequence[Objective]
    windows: Sequence[int]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the burn rates of the signals of one task.

        Args:
            batches: Arrow batches of the level ``OBJECTIVE``, with all rows of each signal.
        """
        filled = [each for each in batches if each.num_rows]
        if not filled:
            return
        [batch] = pa.Table.from_batches(filled).combine_chunks().to_batches()
        known = {each.text: each for each in self.objectives}
        groups = Groups.by([batch["client_id"].fill_null(""), batch["reason"]])
        for number, first in enumerate(groups.first.tolist()):
            objective = known.get(batch["reason"][first].as_py())
            if objective is not None:
                at = np.flatnonzero(groups.of_row == number)
                yield self._of_signal(objective, batch, at)

    def _of_signal(self, objective: Objective, batch: Any, at: Numbers) -> Any:
        minutes = np.asarray(self.windows)
        window = batch["window"].to_numpy()[at]
        order = np.argsort(window)
        window = window[order]
        counts = {}
        for name in ("requests", "failed"):
            sums = np.concatenate([[0], np.cumsum(batch[name].to_numpy()[at][order])])
            until = np.searchsorted(window, minutes, side="right")
            counts[name] = {
                each: sums[until] - sums[np.searchsorted(window, minutes - length, side="right")]
                for each, length in {"now": 1, **WINDOWS}.items()
            }
        burn, bad = {}, counts["failed"]
        for name in WINDOWS:
            share = bad[name] / np.maximum(counts["requests"][name], 1)
            burn[name] = share / (1 - objective.target)
        alert = np.full(len(minutes), None, object)
        for severity, long, short, rate in reversed(ALERTS):
            is_on = (burn[long] >= rate) & (burn[short] >= rate) & (bad[long] >= BAD_MIN)
            alert[is_on] = severity
        client = batch["client_id"][int(at[0])].as_py()
        api = None if objective.api_key is None else api_name(objective.api_key)
        length = len(minutes)
        columns = {
            "window": pa.array(minutes, pa.int64()),
            "objective": pa.repeat(pa.scalar(objective.text), length),
            "api_key": pa.repeat(pa.scalar(objective.api_key, pa.int32()), length),
            "api": pa.repeat(pa.scalar(api, pa.string()), length),
            "client_id": pa.repeat(pa.scalar(client, pa.string()), length),
            "target": pa.repeat(pa.scalar(objective.target), length),
            "requests": pa.array(counts["requests"]["now"], pa.int64()),
            "bad": pa.array(bad["now"], pa.int64()),
            **{f"burn_{name}": pa.array(burn[name], pa.float64()) for name in WINDOWS},
            "alert": pa.array(alert.tolist(), pa.string()),
        }
        rows = pa.RecordBatch.from_arrays([columns[n] for n in _BURN_NAMES], names=_BURN_NAMES)
        is_used = (counts["requests"]["now"] > 0) | np.any(list(burn.values()), axis=0)
        return rows.filter(pa.array(is_used))
