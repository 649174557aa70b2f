"""What the broker has counted, what the pipeline's results say, and whether that is the same.

The results are read from the pipeline's Parquet: whole windows only, up to a moment.
What the log leaves out for a reason is counted apart, but not by API: so of an API whose requests
may be left out some may be missing, and all that are missing together must be as many as there are.
Of any other API none may be, nor of its errors, nor of the connections that closed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from spark.pipeline.written_results import read_table
from trionet.broker.telemetry._broker_metrics import REQUEST_LOG

#: What those who read the log ask about its topic: that is left out of the log.
READERS_APIS = frozenset(
    {"DescribeTopicPartitions", "Fetch", "ListOffsets", "Metadata", "OffsetForLeaderEpoch"}
)

_LINE = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_REQUESTS = "kafka_network_requestmetrics_totaltimems_count"
_ERRORS = "kafka_network_requestmetrics_errors_total"
_CLOSED = "trionet_connections_closed_total"
_OPEN = "trionet_connections_open"
# A consumer's Fetch is counted under this name besides its own.
_ALIAS = "FetchConsumer"
_NO_ERROR = "NONE"


@attrs.frozen
class Counted:
    """How much there was of what.

    Attributes:
        requests: by API.
        errors: by API and error.
        closes: closed connections by reason.
    """

    requests: Mapping[str, int]
    errors: Mapping[tuple[str, str], int]
    closes: Mapping[str, int]


@attrs.frozen
class BrokerCounts(Counted):
    """What a broker has counted since its start.

    Attributes:
        fate: what became of the requests, by the end of the names ``trionet_request_log_*``.
    """

    fate: Mapping[str, int]

    @property
    def apart(self) -> int:
        """Requests that are not in the log, and why is counted."""
        return sum(self.fate[name] for name in ("dropped", "left_out", "sampled_out"))

    @property
    def is_settled(self) -> bool:
        """Nothing waits to be written."""
        return not self.fate["buffered"]

    @classmethod
    def of(cls, page: str) -> BrokerCounts:
        """Read what ``/metrics`` gives."""
        requests: dict[str, int] = {}
        errors: dict[tuple[str, str], int] = {}
        closes: dict[str, int] = {}
        fate: dict[str, int] = {}
        fates = {metric.name: field for field, metric in REQUEST_LOG.items()}
        for name, labels, value in _samples(page):
            count = int(value)
            if name in fates:
                fate[fates[name]] = count
            elif not count or labels.get("request") == _ALIAS:
                continue
            elif name == _REQUESTS:
                requests[labels["request"]] = count
            elif name == _ERRORS and labels["error"] != _NO_ERROR:
                errors[labels["request"], labels["error"]] = count
            elif name == _CLOSED:
                closes[labels["reason"]] = count
        return cls(requests, errors, closes, fate)


def _samples(page: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for line in page.splitlines():
        found = _LINE.fullmatch(line)
        if found is not None and found["value"] != "NaN":
            yield found["name"], dict(_LABEL.findall(found["labels"] or "")), float(found["value"])


def differences(broker: BrokerCounts, results: Counted, late: int = 0) -> list[str]:
    """What is not as it must be, in words.

    Args:
        broker: what the broker has counted, when all of it was written.
        results: what the results say of the same time.
        late: records that came after their window was finished, which the pipeline counts apart.
    """
    found = list(_own_differences(broker))
    missing = Counter(broker.requests)
    missing.subtract(results.requests)
    # What was dropped or came late may be of any API.
    is_any = broker.fate["dropped"] + broker.fate["sampled_out"] + late > 0
    for api, count in sorted(missing.items()):
        if count < 0 or (count and api not in READERS_APIS and not is_any):
            counted = f"{broker.requests.get(api, 0):,} by the broker"
            found.append(f"{api}: {counted}, {results.requests.get(api, 0):,} in the results")
    apart = broker.apart + late
    if sum(missing.values()) != apart:
        found.append(
            f"requests: {sum(missing.values()):,} are not in the results, {apart:,} are counted"
            " apart"
        )
    if not is_any:
        found += _unequal("errors", broker.errors, results.errors)
        found += _unequal("closed connections", broker.closes, results.closes)
    return found


def _own_differences(broker: BrokerCounts) -> Iterator[str]:
    """What the broker says of its log must be what it says of its requests and connections."""
    told = broker.fate["logged"] + broker.fate["buffered"] + broker.apart
    finished = sum(broker.requests.values())
    if told != finished:
        yield f"the broker: {finished:,} requests are over, its log accounts for {told:,}"
    closed = sum(broker.closes.values())
    told = broker.fate["connections_logged"] + broker.fate["connections_dropped"]
    if told != closed:
        yield f"the broker: {closed:,} connections closed, its log accounts for {told:,}"


def _unequal(what: str, broker: Mapping[Any, int], results: Mapping[Any, int]) -> Iterator[str]:
    for key in sorted({*broker, *results}, key=str):
        expected, actual = broker.get(key, 0), results.get(key, 0)
        if expected != actual:
            name = " ".join(key) if isinstance(key, tuple) else key
            yield f"{what}, {name}: {expected:,} by the broker, {actual:,} in the results"


class Results:
    """The tables of a pipeline in a folder.

    Args:
        folder: where it writes.
        before: only windows that begin before this time are looked at.
    """

    def __init__(self, folder: Path, before: datetime) -> None:
        self._folder = folder
        self._before = pa.scalar(before, pa.timestamp("us", "UTC"))

    def table(self, name: str) -> Any:
        """All rows of the windows that are looked at; no columns if there are no rows yet."""
        whole = self._whole(name)
        return whole.filter(pc.less(whole["window"], self._before)) if whole.num_rows else whole

    def _whole(self, name: str) -> Any:
        return read_table(self._folder, name)

    def watermark(self) -> datetime | None:
        """Up to where windows are finished."""
        intake = self._whole("intake")
        return pc.max(intake["watermark"]).as_py() if intake.num_rows else None

    def late(self) -> int:
        """How many records came after their window was finished."""
        intake = self._whole("intake")
        return pc.sum(intake["late"]).as_py() if intake.num_rows else 0

    def counted(self) -> Counted:
        """The sums over all windows."""
        requests, errors, closes = map(self.table, ("requests", "errors", "closes"))
        return Counted(
            requests=_sums(requests, "api", "records"),
            errors={
                (api, error): count
                for (api, error), count in _sums(errors, ("api", "error"), "records").items()
                if error != _NO_ERROR
            },
            closes=_sums(closes, "reason", "connections"),
        )


def _sums(table: Any, keys: str | tuple[str, ...], column: str) -> Counter[Any]:
    found: Counter[Any] = Counter()
    if table.num_rows:
        of = (
            [table[keys].to_pylist()]
            if isinstance(keys, str)
            else [table[k].to_pylist() for k in keys]
        )
        for *key, count in zip(*of, table[column].to_pylist(), strict=True):
            found[key[0] if isinstance(keys, str) else tuple(key)] += count
    return found
