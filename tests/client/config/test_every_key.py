"""No key that is accepted as applied is read by nobody: another value gives other settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from trionet.client.config.keys import PRODUCER_KEYS, ClientKeys
from trionet.client.config.security_keys import OF_LIBRDKAFKA, SECURITY
from trionet.client.producer.config import producer_settings
from trionet.protocol.config_types import BOOLEAN, LIST, Row

Read = Callable[[Mapping[str, object] | None, Mapping[str, object]], object]

CLIENTS: tuple[tuple[ClientKeys, Read], ...] = ((PRODUCER_KEYS, producer_settings),)

#: What a key needs beside it to count, and a value that is not its default.
BESIDE: dict[str, dict[str, object]] = {
    "compression.gzip.level": {"compression.type": "gzip"},
    "compression.lz4.level": {"compression.type": "lz4"},
    "compression.zstd.level": {"compression.type": "zstd"},
}
ANOTHER: dict[str, object] = {
    "acks": "0",
    "delivery.timeout.ms": 300_000,
    "max.in.flight.requests.per.connection": 3,
}
#: Keys with one value.
WITHOUT_CHOICE = {"client.dns.lookup"}
#: Keys of what a client cannot do.
OF_NO_USE = {row[0] for row in (*SECURITY, *OF_LIBRDKAFKA)} | {"enable.metrics.push"}

CASES = [
    pytest.param(read, row, id=f"{keys.client}-{row[0]}")
    for keys, read in CLIENTS
    for row in keys.applied.values()
    if row[0] not in WITHOUT_CHOICE | OF_NO_USE
]


def another(row: Row) -> object:
    """A value that is allowed, and not the default."""
    key, kind, default, rule = row
    if key in ANOTHER:
        return ANOTHER[key]
    if kind == BOOLEAN:
        return not default
    if isinstance(rule, tuple):
        return next(each for each in rule if each != default)
    if isinstance(default, int):
        return default + 1 if rule is None or default + 1 in rule else default - 1
    return ["a", "b"] if kind == LIST else "text"


@pytest.mark.parametrize(("read", "row"), CASES)
def test_another_value_of_a_key_gives_other_settings(read: Read, row: Row) -> None:
    beside = BESIDE.get(row[0], {})

    changed = read({**beside, row[0]: another(row)}, {})

    assert read(beside, {}) != changed
