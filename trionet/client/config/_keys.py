"""Which keys each kind of client has: applied, without meaning here, refused."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from ...errors import ConfigError
from ...protocol._config_types import Row, nearest
from ._admin_keys import ADMIN
from ._common_keys import COMMON, OURS
from ._consumer_keys import CONSUMER
from ._librdkafka_names import KAFKAS_NAME
from ._producer_keys import PRODUCER
from ._security_keys import OF_LIBRDKAFKA, SECURITY
from ._unsupported_keys import REFUSED, WITHOUT_MEANING, Refusal


@attrs.frozen
class ClientKeys:
    """The keys of one kind of client, by their dotted names.

    Attributes:
        client: what it is called in errors.
        applied: the keys that change what it does.
        without_meaning: Kafka's keys that change nothing here.
        refused: Kafka's keys that ask for what trionet does not have.
    """

    client: str
    applied: Mapping[str, Row]
    without_meaning: Mapping[str, Row]
    refused: Mapping[str, Refusal]

    def row(self, name: str) -> Row:
        """The row of a key, written with dots or with underscores.

        Raises:
            ConfigError: this client has no such key; says what comes nearest.
        """
        key = name if "." in name else name.replace("_", ".")
        if row := self.applied.get(key) or self.without_meaning.get(key):
            return row
        if refusal := self.refused.get(key):
            return refusal.row
        if key in KAFKAS_NAME:
            raise ConfigError(f"{key}: librdkafka's name; Kafka's is {KAFKAS_NAME[key]}")
        if of := [f"{each.client}s" for each in CLIENTS if each.has(key)]:
            raise ConfigError(
                f"{key}: no key of {self.client}s, but of {' and '.join(of)}; leave it out"
            )
        raise ConfigError(f"{key}: unknown key{nearest(key, self.applied)}")

    def has(self, key: str) -> bool:
        return key in self.applied or key in self.without_meaning or key in self.refused


def _keys_of(client: str, own: tuple[Row, ...]) -> ClientKeys:
    # What a client's own table has comes last: its defaults win.
    rows = (*COMMON, *OURS, *SECURITY, *OF_LIBRDKAFKA, *own)
    return ClientKeys(
        client,
        MappingProxyType({row[0]: row for row in rows}),
        MappingProxyType({row[0]: row for row in WITHOUT_MEANING[client]}),
        MappingProxyType({each.row[0]: each for each in REFUSED[client]}),
    )


PRODUCER_KEYS: Final = _keys_of("producer", PRODUCER)
CONSUMER_KEYS: Final = _keys_of("consumer", CONSUMER)
ADMIN_KEYS: Final = _keys_of("admin client", ADMIN)
CLIENTS: Final = (PRODUCER_KEYS, CONSUMER_KEYS, ADMIN_KEYS)
