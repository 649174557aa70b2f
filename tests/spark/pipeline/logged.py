"""Records of a request log for tests, and what they come to: counted one by one."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import attrs
import pyarrow as pa

from trionet.protocol.request_log import LoggedConnection, LoggedRequest, Origin, encode
from trionet.spark.pipeline._partials import PHASES

Logged = LoggedRequest | LoggedConnection

#: 2025-11-22 23:50 UTC, so that a quarter of an hour is on two days.
BEGIN = 1_763_855_400
MINUTE = BEGIN // 60

#: Names that a client may give itself.
CLIENTS = ("shop", "", "../../etc/passwd", "a=b/c%2F", "\x1b[2J\x00\n", "<script>", "Ω" * 127)


def request(second: float, **fields: Any) -> LoggedRequest:
    """A request that was over so many seconds after ``BEGIN``."""
    of_origin = {field.name for field in attrs.fields(Origin)}
    origin: dict[str, Any] = {
        "node_id": 1,
        "processor": 0,
        "listener": "PLAINTEXT",
        "client_id": "shop",
    }
    origin.update({name: fields.pop(name) for name in list(fields) if name in of_origin})
    values: dict[str, Any] = dict.fromkeys((f"{phase}_us" for phase in PHASES), 0)
    values.update(api_key=0, api_version=9, request_bytes=100, response_bytes=50)
    values.update(fields, completed_at_us=round((BEGIN + second) * 1e6))
    return LoggedRequest(origin=Origin(**origin), **values)


def closed(second: float, **fields: Any) -> LoggedConnection:
    """A connection that closed so many seconds after ``BEGIN``."""
    origin = Origin(node_id=1, processor=0, listener="PLAINTEXT", client_id="shop")
    values: dict[str, Any] = {"open_us": 5_000_000, "requests": 7, "bytes_received": 700}
    values.update(bytes_sent=350, reason="PEER_CLOSED", peer="127.0.0.1:1")
    values.update(fields, closed_at_us=round((BEGIN + second) * 1e6))
    return LoggedConnection(origin=origin, **values)


def traffic(seed: int, count: int, seconds: float) -> list[Logged]:
    """Requests and closed connections of many kinds, in the order of their times."""
    random = Random(seed)
    made: list[Logged] = []
    for number in range(count):
        second = seconds * number / count
        if random.random() < 0.02:
            reason = random.choice(["PEER_CLOSED", "IDLE"])
            made.append(closed(second, reason=reason, requests=random.randrange(9)))
            continue
        times = [int(random.lognormvariate(5, 2)) for _ in range(6)]
        times[3] = times[3] if random.random() < 0.05 else 0
        named = dict(zip((f"{phase}_us" for phase in PHASES), [*times, sum(times)], strict=True))
        made.append(
            request(
                second,
                listener=random.choice(["PLAINTEXT", "SSL"]),
                client_id=random.choice(CLIENTS),
                principal=random.choice(["User:ANONYMOUS", "User:ann"]),
                api_key=random.choice([0, 1, 1, 3, 99]),
                end=random.choice([0, 0, 0, 0, 0, 0, 0, 1, 2]),
                error_code=random.choice([0, 0, 0, 0, 0, 6, 999]),
                request_bytes=random.randrange(5000),
                response_bytes=random.randrange(5000),
                **named,
            )
        )
    return made


def table(records: Iterable[Logged | bytes], read_at: float = BEGIN + 3 * 3600) -> Any:
    """Records as Spark hands them to the fold, in their order; bytes are taken as they are."""
    values = [each if isinstance(each, bytes) else encode(each) for each in records]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(values, pa.binary()),
            pa.array([0] * len(values), pa.int32()),
            pa.array(range(len(values)), pa.int64()),
            pa.array([round(read_at * 1e6)] * len(values), pa.timestamp("us", tz="UTC")),
        ],
        names=["value", "partition", "offset", "read_at"],
    )


def nearest_rank(numbers: Sequence[int], per_mille: int) -> int:
    """The exact percentile."""
    return sorted(numbers)[max(math.ceil(len(numbers) * per_mille / 1000), 1) - 1]


def window_of(logged: Logged) -> int:
    """The minute that a record is in."""
    if isinstance(logged, LoggedRequest):
        return logged.completed_at_us // 60_000_000
    return logged.closed_at_us // 60_000_000


def counted(records: Iterable[Logged]) -> dict[str, dict[tuple[Any, ...], dict[str, Any]]]:
    """The rows of the tables that are sums, by their window and dimensions.

    Percentiles are left out, and there is a list of the times of each phase.
    """
    tables: dict[str, dict[tuple[Any, ...], Any]] = defaultdict(dict)

    def row(name: str, *key: Any) -> Any:
        return tables[name].setdefault(key, Counter())

    for each in records:
        window, origin = window_of(each), each.origin
        of_window = row("windows", window)
        if isinstance(each, LoggedConnection):
            of_window["connections"] += 1
            found = row("closes", window, origin.listener, origin.client_id, each.reason)
            found["connections"] += 1
            found["requests"] += each.requests
            found["bytes_received"] += each.bytes_received
            found["bytes_sent"] += each.bytes_sent
            continue
        is_error = each.error_code != 0 or each.end in {2, 3}
        of_series = row("requests", window, each.api_key, origin.client_id, origin.listener)
        for found in (of_window, of_series):
            found["requests"] += 1
            found["records"] += 1
            found["request_bytes"] += each.request_bytes
            found["response_bytes"] += each.response_bytes
            found["errors"] += is_error
            found["throttled"] += each.throttle_us > 0
        for phase in PHASES:
            of_series.setdefault(phase, []).append(getattr(each, f"{phase}_us"))
        if is_error:
            key = (each.api_key, origin.client_id, origin.listener, each.end, each.error_code)
            row("errors", window, *key)["requests"] += 1
        quota = row("quotas", window, origin.client_id, origin.principal, origin.listener)
        quota["requests"] += 1
        quota["throttled"] += each.throttle_us > 0
        quota["throttle_us"] += each.throttle_us
        quota["bytes"] += each.request_bytes + each.response_bytes
        quota["time_us"] += each.total_us
    return tables
