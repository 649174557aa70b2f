"""Codecs of messages: reading and writing each, beside kio and kafka-python.

Every side reads the same bytes and writes the same values; what it writes is compared first. A run
is many short rounds, all sides in turn, and the best round of each. `trionet chunks` leaves the
megabyte where it is, as the broker does.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from io import BytesIO
from timeit import Timer
from typing import Any, Final

import attrs
from kio.serial import entity_reader, entity_writer

from bench.measured import Figure, Measured
from bench.messages import Case, cases
from bench.options import Options
from protocol.kio_values import entity_class
from trionet.protocol._codec import ApiVersionCodec, lookup
from trionet.protocol.messages.registry import APIS

RUNS = 3
SECONDS = 0.5
ROUND_SECONDS: Final = 0.002
KAFKA_PYTHON: Final = "kafka-python"

_OURS_JOINED: Final = "out = []\nencode(message, out)\nb''.join(out)"
_KIO_WRITE: Final = "with BytesIO() as out:\n    write(out, entity)\n    out.getvalue()"


@attrs.frozen
class Statement:
    """What a side does for one message: Python source, and the names in it."""

    source: str
    names: dict[str, Any]


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "codecs of messages, one at a time",
        (Figure("rate", "messages/s"), Figure("us", "µs", "{:,.2f}".format)),
    )
    theirs = _kafka_python_classes() if options.wants(KAFKA_PYTHON) else {}
    for case in cases():
        for work, sides in (("decode", _decoding), ("encode", _encoding)):
            name = f"{case.title}: {work}"
            if options.wants_case(name):
                statements = sides(case, theirs)
                wanted = {side: statements[side] for side in statements if options.wants(side)}
                for _ in range(options.runs):
                    for side, seconds in best_of_rounds(wanted, options.seconds).items():
                        measured.add(name, side, {"rate": 1 / seconds, "us": seconds * 1e6})
    return measured


def best_of_rounds(statements: Mapping[str, Statement], seconds: float) -> dict[str, float]:
    """Seconds that each statement takes in its best round; the sides take turns."""
    timers = {side: Timer(each.source, globals=each.names) for side, each in statements.items()}
    numbers = {side: _number(timer) for side, timer in timers.items()}
    best = dict.fromkeys(timers, float("inf"))
    for _ in range(max(1, int(seconds / ROUND_SECONDS / max(1, len(timers))))):
        for side, timer in timers.items():
            best[side] = min(best[side], timer.timeit(numbers[side]) / numbers[side])
    return best


def _number(timer: Timer) -> int:
    """How often a statement runs in one round."""
    timer.timeit(3)
    return max(1, int(ROUND_SECONDS / (timer.timeit(10) / 10)))


def codec_of(case: Case) -> ApiVersionCodec:
    """Our codec of a message."""
    codec = lookup(case.api_key, case.version)
    assert codec is not None
    return codec


def functions_of(case: Case) -> tuple[Callable[..., Any], Callable[..., None]]:
    """Our two functions for a message."""
    codec = codec_of(case)
    if case.side == "request":
        return codec.decode_request, codec.encode_request
    return codec.decode_response, codec.encode_response


def encoded(case: Case) -> bytes:
    """The message on the wire, without a header."""
    chunks: list[bytes] = []
    functions_of(case)[1](case.message, chunks)
    return b"".join(chunks)


def _decoding(case: Case, theirs: Mapping[str, Any]) -> dict[str, Statement]:
    data = encoded(case)
    decode = functions_of(case)[0]
    assert decode(data, 0) == case.message
    statements = {
        "trionet": Statement("decode(data, 0)", {"decode": decode, "data": data}),
        "kio": Statement("read(data, 0)", {"read": entity_reader(_kio_class(case)), "data": data}),
    }
    if theirs:
        names = {"decode": _kafka_python_class(case, theirs).decode, "data": data}
        statements[KAFKA_PYTHON] = Statement(f"decode(data, {case.version})", names)
    return statements


def _encoding(case: Case, theirs: Mapping[str, Any]) -> dict[str, Statement]:
    data = encoded(case)
    ours = {"encode": functions_of(case)[1], "message": case.message}
    kio_class = _kio_class(case)
    entity, size = entity_reader(kio_class)(data, 0)
    write = entity_writer(kio_class)
    assert size == len(data)
    assert data == _written_by_kio(write, entity)
    statements = {
        "trionet": Statement(_OURS_JOINED, ours),
        "trionet chunks": Statement("encode(message, [])", ours),
        "kio": Statement(_KIO_WRITE, {"BytesIO": BytesIO, "write": write, "entity": entity}),
    }
    if theirs:
        message = _kafka_python_class(case, theirs).decode(data, case.version)
        assert data == bytes(message.encode())
        statements[KAFKA_PYTHON] = Statement("message.encode()", {"message": message})
    return statements


def _written_by_kio(write: Callable[..., None], entity: object) -> bytes:
    with BytesIO() as out:
        write(out, entity)
        return out.getvalue()


def _kio_class(case: Case) -> Any:
    return entity_class(APIS[case.api_key][0], case.version, case.side)


def _kafka_python_class(case: Case, theirs: Mapping[str, Any]) -> Any:
    return theirs[type(case.message).__name__]


def _kafka_python_classes() -> dict[str, Any]:
    """The message classes of kafka-python, by Kafka's names for them."""
    package = importlib.import_module("kafka.protocol")
    found: dict[str, Any] = {}
    for kind in ("admin", "consumer", "metadata", "producer"):
        folder = importlib.import_module(f"{package.__name__}.{kind}")
        for info in pkgutil.iter_modules(folder.__path__):
            found |= vars(importlib.import_module(f"{folder.__name__}.{info.name}"))
    return found
