"""Jafka's configuration keys, with their defaults except where the comments say otherwise.

Each key is applied, or accepted without effect and logged at the start; any other is an error.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Mapping
from typing import Final, cast

from .._util._text import nearest
from ..errors import ConfigError
from ..protocol import _config_types as types

APPLIED: Final[tuple[types.Row, ...]] = (
    ("port", types.INT, 9092, types.between(0, 65535)),
    # Not the number of CPUs, as in Jafka: processors share one loop.
    ("num.threads", types.INT, 1, types.FROM_1),
    ("max.connections", types.INT, 10000, types.FROM_1),
    ("socket.send.buffer", types.INT, 102400, types.FROM_MINUS_1),
    ("socket.receive.buffer", types.INT, 102400, types.FROM_MINUS_1),
    ("max.socket.request.bytes", types.INT, 104857600, types.FROM_1),
    ("max.message.size", types.INT, 1048576, types.at_least(0)),
    ("num.partitions", types.INT, 1, types.FROM_1),
    ("topic.partition.count.map", types.LIST, (), None),
    ("log.dir", types.STRING, None, None),
    ("log.file.size", types.INT, 1073741824, types.at_least(6)),
    ("log.flush.interval", types.INT, 500, types.FROM_1),
    ("log.default.flush.scheduler.interval.ms", types.INT, 3000, types.FROM_1),
    ("log.default.flush.interval.ms", types.INT, None, types.at_least(0)),  # the scheduler's
    ("topic.flush.intervals.ms", types.LIST, (), None),
    ("log.retention.hours", types.INT, 168, types.FROM_1),
    ("topic.log.retention.hours", types.LIST, (), None),
    ("log.retention.size", types.LONG, -1, types.FROM_MINUS_1),
    ("log.cleanup.interval.mins", types.INT, 10, types.FROM_1),
    ("password", types.PASSWORD, None, None),
    # trionet's own. Jafka listens on all interfaces.
    ("host", types.STRING, "127.0.0.1", None),
    ("connections.max.idle.ms", types.LONG, -1, types.FROM_MINUS_1),
    ("metrics.listener", types.STRING, None, None),
    ("metrics.local.enable", types.BOOLEAN, True, None),
)
#: Accepted with any value, like everything about ZooKeeper.
WITHOUT_EFFECT: Final = (
    *("brokerid", "hostname", "http.port", "log.rolling.strategy", "monitoring.period.secs"),
    *("topic.autocreated", "enable.zookeeper"),
)
_ZOOKEEPER: Final = "zk."
KEYS: Final = {row[0]: row for row in APPLIED}
_PASSWORD: Final = re.compile("(plain):([^:]+)|(md5):([0-9a-f]{32})|(crc32):([0-9]{1,10})")
#: The keys for some topics, with the key for the others.
_BY_TOPIC: Final = {
    "topic.partition.count.map": "num.partitions",
    "topic.flush.intervals.ms": "log.default.flush.interval.ms",
    "topic.log.retention.hours": "log.retention.hours",
}


class JafkaConfig:
    """Validated settings.

    Args:
        settings: the values by Jafka's keys, or by the same with underscores instead of dots;
            strings as in ``server.properties``, or Python values.

    Raises:
        ConfigError: a key is unknown, or a value is not allowed.

    Attributes:
        without_effect: the keys that are set but have no effect here.
        log_dir: the folder of the logs, or None.
        host: the address to listen on.
        metrics_listener: the endpoint of the metrics listener, or None.
    """

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._values: dict[str, types.Value] = {key: row[2] for key, row in KEYS.items()}
        self.without_effect: list[str] = []
        for name, raw in settings.items():
            key = name if "." in name else name.replace("_", ".")
            if key in WITHOUT_EFFECT or key.startswith(_ZOOKEEPER):
                self.without_effect.append(key)
                continue
            if key not in KEYS:
                near = nearest(key, (*KEYS, *WITHOUT_EFFECT))
                raise ConfigError(f"{key}: unknown key{near}")
            value = types.parse_value(key, KEYS[key][1], KEYS[key][3], raw)
            if value is not None:
                self._values[key] = value
        self._by_topic = {key: self._topics_of(key) for key in _BY_TOPIC}
        self._password = _parse_password(self._values["password"])
        if self._values["log.default.flush.interval.ms"] is None:
            interval = self._values["log.default.flush.scheduler.interval.ms"]
            self._values["log.default.flush.interval.ms"] = interval
        self.log_dir = cast("str | None", self._values["log.dir"])
        if self.log_dir == "":  # it would be the current folder
            raise ConfigError("log.dir is empty; allowed: the path of a folder")
        self.host = cast(str, self._values["host"])
        if self.host == "":  # it would be all addresses
            raise ConfigError("host is empty; allowed: a host name or an IP address")
        self.metrics_listener = cast("str | None", self._values["metrics.listener"])

    def __getitem__(self, key: str) -> int:
        """Return the value of a key that is a number."""
        return cast(int, self._values[key])

    def of_topic(self, key: str, topic: str) -> int:
        """Return the number for a topic, by a key such as ``topic.flush.intervals.ms``."""
        return self._by_topic[key].get(topic, self[_BY_TOPIC[key]])

    def is_password(self, password: str | None) -> bool:
        """Return whether a password is the one that is set; any is if none is set.

        Raises:
            ValueError: there is no password to be hashed.
        """
        kind, expected = self._password
        if kind in ("", "plain"):
            return not kind or password == expected
        if password is None:
            raise ValueError("the request contains no password")
        data = password.encode("utf-8", "surrogatepass")
        if kind == "md5":
            return hashlib.md5(data, usedforsecurity=False).hexdigest() == expected
        return zlib.crc32(data) == int(expected)

    def _topics_of(self, key: str) -> dict[str, int]:
        rule = KEYS[_BY_TOPIC[key]][3]
        found = {}
        for item in cast("tuple[str, ...]", self._values[key]):
            topic, _, number = item.rpartition(":")
            if not topic.strip():
                raise ConfigError(f"{key} = {item!r} is not allowed; allowed: TOPIC:NUMBER,…")
            of_topic = f"{key} for topic {topic.strip()}"
            found[topic.strip()] = cast(int, types.parse_value(of_topic, types.INT, rule, number))
        return found


def _parse_password(setting: types.Value) -> tuple[str, str]:
    """Return how a password is compared, and with what; empty strings if there is none."""
    if not isinstance(setting, types.Password):
        return "", ""
    found = _PASSWORD.fullmatch(re.sub(r"\s*:\s*", ":", setting.text.strip()))
    if found is None:
        raise ConfigError(
            "password is not allowed; allowed: plain:TEXT, md5:HEX with 32 digits of 0-9 and a-f,"
            " or crc32:NUMBER with up to 10 digits"
        )
    kind, secret = filter(None, found.groups())
    return kind, secret
