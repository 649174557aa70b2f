"""Which values of settings a broker accepts at run time: the same questions for Kafka and for ours.

``python -m support.setting_verdicts`` in ``tests`` asks a new node of Apache Kafka, and replaces
the file of its verdicts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

from support.calls import create_topic
from support.client import Client, connect
from support.config_calls import BROKER, SET, TOPIC, alter
from support.kafka_node import kafka_node
from trionet.broker.config._broker_config import BROKER_KEYS
from trionet.broker.config._broker_keys import TRIONET_KEYS
from trionet.broker.config._topic_keys import TOPIC_KEYS
from trionet.protocol._config_types import DOUBLE, INT, SHORT

VERDICTS: Final = Path(__file__).parents[1] / "interop" / "setting_verdicts.json"

_OURS = frozenset(row[0] for row in TRIONET_KEYS)
_LARGEST = {INT: "2147483647", SHORT: "32767", DOUBLE: "1.7976931348623157E308"}
_LONG_MAX = "9223372036854775807"

#: Keys that Kafka does not know, and keys of single listeners.
_MORE_KEYS = (
    "custom.key",
    "foo",
    "rsm.config.x",
    "listener.name.other.max.connections",
    *(
        f"listener.name.plaintext.{key}"
        for key in (
            "connections.max.idle.ms",
            "custom",
            "max.connection.creation.rate",
            "max.connections",
            "max.connections.per.ip",
            "num.io.threads",
            "num.network.threads",
            "sasl.enabled.mechanisms",
            "ssl.keystore.location",
        )
    ),
)

#: A key of each type that is spelled in ways of which Java and Python do not know the same ones.
SPELLED: Final = (
    (BROKER, "log.retention.ms"),
    (BROKER, "log.cleaner.io.buffer.load.factor"),
    (BROKER, "log.preallocate"),
    (TOPIC, "retention.ms"),
    (TOPIC, "min.cleanable.dirty.ratio"),
    (TOPIC, "preallocate"),
)
SPELLINGS: Final = (
    *("0_1", "1_0.0", " 1 ", "+1", "01", "0x1", "1L", "1f", "1d", "1.", ".5", "1,0"),
    *("1e0", "1e400", "NaN", "nan", "Infinity", "-Infinity", "inf", "0x1p0"),
    *("\u0661", "\uff11", "\xa01", "1\u2003", "1\x01"),
    *("True", "TRUE", " true ", "\xa0true", "yes"),
)

Verdicts = dict[str, dict[str, str]]
"""Error codes by scope and key, for one value after the other, as a text."""


def values(kind: int) -> tuple[str, ...]:
    """0, 1, -1, the largest of a type, nothing, and nonsense."""
    return "0", "1", "-1", _LARGEST.get(kind, _LONG_MAX), "", "nonsense"


def broker_keys() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Kafka's keys of brokers and others, with the values to try."""
    for key, kind, *_ in BROKER_KEYS.values():
        if key not in _OURS:
            yield key, values(kind)
    for key in _MORE_KEYS:
        yield key, values(0)


async def ask(address: str, node_id: int = 1) -> Verdicts:
    """Ask a new broker for its verdicts, without altering anything."""

    async def verdict(type: int, name: str, key: str, texts: tuple[str, ...]) -> str:
        found = [
            (await alter(client, type, name, (key, SET, text), validate_only=True))[0]
            for text in texts
        ]
        return " ".join(map(str, found))

    async with connect(address) as client:
        await create_topic(client, "t")
        scopes = {"one broker": str(node_id), "all brokers": ""}
        verdicts: Verdicts = {
            scope: {key: await verdict(BROKER, name, key, texts) for key, texts in broker_keys()}
            for scope, name in scopes.items()
        }
        verdicts["topic"] = {
            key: await verdict(TOPIC, "t", key, values(kind))
            for key, kind in [*((row.name, row.kind) for row in TOPIC_KEYS.values()), ("custom", 0)]
        }
        verdicts["spelling"] = {
            f"{key}={text}": await verdict(type, "t" if type == TOPIC else "", key, (text,))
            for type, key in SPELLED
            for text in SPELLINGS
        }
    return verdicts


async def set_all(client: Client, name: str, number: int) -> list[str]:
    """Set one value after the other of those with a number in :func:`values`.

    Returns:
        The keys that were accepted.
    """
    accepted = []
    for key, texts in broker_keys():
        code, _ = await alter(client, BROKER, name, (key, SET, texts[number]))
        if code == 0:
            accepted.append(key)
    return accepted


def recorded() -> Verdicts:
    """The verdicts of Apache Kafka."""
    verdicts: Verdicts = json.loads(VERDICTS.read_text("utf-8"))
    return verdicts


def main() -> None:
    """Ask Apache Kafka."""
    with kafka_node() as (address, _):
        verdicts = trio.run(ask, address)
    VERDICTS.write_text(json.dumps(verdicts, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
