"""The keys of each kind of client: applied, without effect, or unsupported."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from ...errors import ConfigError
from ...protocol._config_types import Row, nearest
from ._applied_keys import ADMIN, COMMON, CONSUMER, OF_LIBRDKAFKA, OURS, PRODUCER, SECURITY
from ._librdkafka_names import KAFKAS_NAME
from ._unsupported_keys import UNSUPPORTED, WITHOUT_EFFECT, UnsupportedKey


@attrs.frozen
class ClientKeys:
    """The keys of one kind of client, under their dotted names.

    Attributes:
        client: the name of this kind of client in error messages.
        applied: the keys that have an effect.
        without_effect: Kafka's keys that are accepted but have no effect.
        unsupported: Kafka's keys for features that trionet does not have.
    """

    client: str
    applied: Mapping[str, Row]
    without_effect: Mapping[str, Row]
    unsupported: Mapping[str, UnsupportedKey]

    def row(self, name: str) -> Row:
        """Return the row of a key; the name may have dots or underscores.

        Raises:
            ConfigError: this client has no such key; the message suggests what to do instead.
        """
        key = name if "." in name else name.replace("_", ".")
        if row := self.applied.get(key) or self.without_effect.get(key):
            return row
        if unsupported := self.unsupported.get(key):
            return unsupported.row
        if key in KAFKAS_NAME:
            raise ConfigError(f"{key} is librdkafka's name; use Kafka's: {KAFKAS_NAME[key]}")
        if of := [f"{each.client}s" for each in CLIENTS if each.has(key)]:
            raise ConfigError(
                f"{key} is a setting of {' and '.join(of)}, not of {self.client}s; leave it out"
            )
        raise ConfigError(f"{key}: unknown key{nearest(key, self.applied)}")

    def has(self, key: str) -> bool:
        return key in self.applied or key in self.without_effect or key in self.unsupported


def _keys_of(client: str, own: tuple[Row, ...]) -> ClientKeys:
    # The client's own table comes last: its defaults take precedence.
    rows = (*COMMON, *OURS, *SECURITY, *OF_LIBRDKAFKA, *own)
    return ClientKeys(
        client,
        MappingProxyType({row[0]: row for row in rows}),
        MappingProxyType({row[0]: row for row in WITHOUT_EFFECT[client]}),
        MappingProxyType({each.row[0]: each for each in UNSUPPORTED[client]}),
    )


PRODUCER_KEYS: Final = _keys_of("producer", PRODUCER)
CONSUMER_KEYS: Final = _keys_of("consumer", CONSUMER)
ADMIN_KEYS: Final = _keys_of("admin client", ADMIN)
CLIENTS: Final = (PRODUCER_KEYS, CONSUMER_KEYS, ADMIN_KEYS)
