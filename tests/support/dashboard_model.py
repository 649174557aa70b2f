"""A model of the dashboard with something in every list, the same each time."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from itertools import accumulate
from operator import attrgetter
from random import Random
from typing import Any, Final

import attrs

from trionet.dashboard.model import _rows as row_types
from trionet.dashboard.model._figures import History
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._pipeline_rows import (
    AnomalyRow,
    IncidentRow,
    MinuteRow,
    SeriesRow,
    TalkerRow,
)
from trionet.dashboard.model._row_factory import row_factory
from trionet.dashboard.model._rows import ConnectionRow, LogRow
from trionet.dashboard.model._section import Section
from trionet.dashboard.model._snapshot import (
    HANDLERS_IDLE,
    LOOP_IDLE_SECONDS,
    LOOP_LAG,
    PROCESSORS_IDLE,
    RESIDENT_BYTES,
    BrokerSnapshot,
    Readings,
)
from trionet.dashboard.model._tail import TailRow
from trionet.metrics._rates import upper_of
from trionet.metrics._request_times import PHASES, STEP_NS

#: What clients may call themselves, and topics and groups in clusters that allow more than Kafka.
HOSTILE_NAMES: Final = (
    "\x1b[2J\x1b]0;title\x07",
    "\x9b31m red",
    "[bold]markup[/nope]",
    "[link=http://example.org]here[/link]",
    "two\nlines\r\tand more",
    "\u202eright to left\u2066",
    "zero\u200bwidth\u00ad\ufeff",
    "日本語のトピック",
    "e\u0301\u0301\u0301 combined",
    "👩‍👩‍👧‍👦 family",
    "\ud800 half a pair",
    "=HYPERLINK(1)",
    "\x00",
    "x" * 5000,
)
SECONDS: Final = 60


def busy_model(name: str = "billing") -> Model:
    """A broker that was watched for a minute.

    Args:
        name: what clients, topics and groups are called.
    """
    model = Model()
    model.responded_at = 0.0
    for second in range(SECONDS):
        model.update_network(_taken(second), float(second))
    model.about = attrs.evolve(model.about, source="127.0.0.1:9092")
    connection, line = row_factory(ConnectionRow), row_factory(LogRow)
    connections = [connection(_connection(number, name)) for number in range(30)]
    model.replace_rows("connections", {row.number: row for row in connections}, 30, 60.0)
    lines = [line(_log_line(number, name)) for number in range(40)]
    model.replace_rows("log", {row.number: row for row in lines}, 40, 60.0)
    return model


#: The lists that :func:`full_model` fills beyond those of :func:`busy_model`.
ROWS: Final[dict[str, Any]] = {
    "closed": row_types.ClosedRow,
    "close_reasons": row_types.CloseReasonRow,
    "requests": row_types.RequestRow,
    "fetch_sessions": row_types.FetchSessionRow,
    "tasks": row_types.TaskRow,
    "faults": row_types.FaultRow,
    "brokers": row_types.BrokerRow,
    "topics": row_types.TopicRow,
    "partitions": row_types.PartitionRow,
    "groups": row_types.GroupRow,
    "transactions": row_types.TransactionRow,
    "configs": row_types.ConfigRow,
    "quotas": row_types.QuotaRow,
    "tail": TailRow,
    "pipeline.minutes": MinuteRow,
    "pipeline.series": SeriesRow,
    "pipeline.talkers": TalkerRow,
    "pipeline.anomalies": AnomalyRow,
    "pipeline.incidents": IncidentRow,
}


def full_model(name: str) -> Model:
    """A model in which every list has rows, and every text is the name."""
    model = busy_model(name)
    for attribute, row in ROWS.items():
        section: Section[Any, Any] = attrgetter(attribute)(model)
        section.replace({0: filled(row, name)}, 60.0)
    for attribute in ("apis", "connections", "processors", "log"):
        section = getattr(model, attribute)
        first = filled(type(next(iter(section.values()))), name)
        section.replace({0: first, **section}, 60.0)
    model.about = attrs.evolve(model.about, source=name, software=name)
    model.set_alarm("something", f"{name} went wrong")
    return model


def filled(row: Any, name: str) -> Any:
    """A row whose texts are all the name."""
    hints = typing.get_type_hints(row)
    return row(**{field.name: _value(hints[field.name], name) for field in attrs.fields(row)})


def _value(kind: Any, name: str) -> Any:
    if isinstance(kind, types.UnionType):
        return _value(next(each for each in kind.__args__ if each is not type(None)), name)
    simple = {str: name, int: 7, float: 1.5, bool: True, bytes: name.encode("utf-8", "replace")}
    if kind in simple:
        return simple[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    if kind is History:
        history = History()
        history.add(1.0, 2.0)
        return history
    if typing.get_origin(kind) is Mapping:
        return {_value(each, name): 2 for each in typing.get_args(kind)[:1]}
    if typing.get_origin(kind) in (tuple, Sequence):
        parts = [each for each in typing.get_args(kind) if each is not Ellipsis]
        # As many numbers as a request has phases, which are all that is counted by its place.
        many = len(PHASES) if parts == [float] else 1
        return tuple(_value(each, name) for each in parts * many)
    return filled(kind, name)


def _taken(second: int) -> BrokerSnapshot:
    """What the broker told in one second; the same numbers in every run."""
    rng = Random(second)
    apis = [_api(name, share, second) for name, share in APIS.items()]
    requests = sum(each["requests"] for each in apis)
    about = {
        "trionet": "0.1.0",
        "node_id": 1,
        "cluster_id": "cluster",
        "uptime_seconds": 3_600.0 + second,
        "listeners": ["PLAINTEXT://127.0.0.1:9092"],
        "queues": {"requests": rng.randrange(40), "requests_max": 500, "responses": {"0": 2}},
        "totals": {
            "requests": requests,
            "bytes_received": requests * 130,
            "bytes_sent": requests * 900,
            "connections_created": 40 + second // 4,
            "connections_closed": 10 + second // 4,
        },
        "closed": {"CLIENT_DISCONNECTED": 9 + second // 4, "IDLE_EXPIRED": 1},
        "apis": apis,
        "processors": [_processor(number, requests) for number in range(3)],
        "channels": {
            "total": 30,
            "examined": 30,
            "muted": 8 + second % 4,
            "staged": second * 7 % 5,
            "with_staged": 2,
            "phases": {"idle": 19, "staged": 1, "remote": 7, "request queue": 2, "throttled": 1},
        },
    }
    readings: Readings = {
        LOOP_IDLE_SECONDS: {(): 0.4 * second + rng.random() / 10},
        PROCESSORS_IDLE: {(): 0.6},
        HANDLERS_IDLE: {(): 0.8},
        LOOP_LAG: {("0.50",): 8e-6, ("0.99",): 240e-6, ("1",): 0.004},
        RESIDENT_BYTES: {(): 64 * 1024**2},
    }
    return BrokerSnapshot(float(second), about, readings)


#: Requests a second of each API.
APIS: Final = {"Produce": 1900, "Fetch": 1500, "Metadata": 12, "Heartbeat": 7, "OffsetCommit": 3}


@cache
def _requests(name: str, share: int) -> list[int]:
    """How many there were up to each second."""
    rng = Random(name)
    return list(accumulate(share + rng.randrange(share) for _ in range(SECONDS)))


def _api(name: str, share: int, second: int) -> dict[str, Any]:
    requests = _requests(name, share)[second]
    return {
        "name": name,
        "requests": requests,
        "bytes": requests * 130,
        "phases_ms": {phase: requests * ms for phase, ms in zip(PHASES, PHASES_MS, strict=True)},
        "total_ms": [
            (upper_of(40 + n) * STEP_NS / 1e6, requests // (1 + abs(n - 12))) for n in range(40)
        ],
    }


PHASES_MS: Final = (0.02, 0.05, 0.30, 0.0, 0.01, 0.02, 0.40)


def _processor(number: int, requests: int) -> dict[str, Any]:
    return {
        "id": number,
        "listener": "PLAINTEXT",
        "connections": 10,
        "in_flight": number,
        "response_queue": 0,
        "request_queue_full": number // 2,
        "requests": requests // 3,
        "responses": requests // 3,
        "bytes_received": requests * 43,
        "bytes_sent": requests * 300,
    }


def _connection(number: int, name: str) -> dict[str, Any]:
    return {
        "number": 30 - number,
        "id": f"127.0.0.1:9092-127.0.0.1:{40_000 + number}-0-{number}",
        "listener": "PLAINTEXT",
        "processor": number % 3,
        "peer": f"127.0.0.1:{40_000 + number}",
        "principal": "User:ANONYMOUS",
        "software": "librdkafka",
        "software_version": "2.6.0",
        "client_id": f"{name}-{number}",
        "age_seconds": 12.5 * number,
        "idle_seconds": 0.0125 * number,
        "requests": 1_000 * number,
        "bytes_received": 130_000 * number,
        "bytes_sent": 900_000 * number,
        "is_muted": number % 3 == 0,
        "mute_state": "MUTED" if number % 3 == 0 else "NOT_MUTED",
        "phase": "handled" if number % 3 == 0 else "idle",
        "request": "Fetch" if number % 3 == 0 else None,
        "request_seconds": 0.2 if number % 3 == 0 else None,
        "staged": 0,
        "request_rate": 12.5 * (number % 7),
        "byte_rate": 4_096.0 * (number % 7),
    }


def _log_line(number: int, name: str) -> dict[str, Any]:
    return {
        "number": 40 - number,
        "time": 1_700_000_000.0 - number,
        "level": "WARNING" if number % 10 == 3 else "INFO",
        "logger": "trionet.server",
        "text": f"the connection of {name} has ended\nas it says",
    }
