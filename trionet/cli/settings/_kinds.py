"""The setting keys of brokers, producers, consumers and admin clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from trionet.client.config._keys import ClientKeys

BROKER: Final = "broker"
CLIENTS: Final = ("producer", "consumer", "admin")
KINDS: Final = (BROKER, *CLIENTS)

APPLIED, NO_EFFECT, REJECTED, NOT_APPLIED = (
    "applied",
    "without meaning",
    "refused",
    "not applied",
)


class Key(NamedTuple):
    """A setting key and how it is handled.

    Attributes:
        name: Kafka's dotted key.
        default: the default as text; None if there is none.
        type: Kafka's name for the type of the value.
        use: how it is handled: :data:`APPLIED`, :data:`NO_EFFECT`, and so on.
        meaning: the description, or the advice for a rejected key; empty if there is none.
    """

    name: str
    default: str | None
    type: str
    use: str
    meaning: str


def client_keys(kind: str) -> ClientKeys:
    """Return the keys of a kind of client."""
    from trionet.client.config import _keys as keys

    return {
        "producer": keys.PRODUCER_KEYS,
        "consumer": keys.CONSUMER_KEYS,
        "admin": keys.ADMIN_KEYS,
    }[kind]


def keys_of(kind: str) -> dict[str, Key]:
    """Return all keys of a kind, sorted by name."""
    return dict(sorted((_broker_keys() if kind == BROKER else _client_keys(kind)).items()))


def _client_keys(kind: str) -> dict[str, Key]:
    from ._client_key_docs import MEANINGS

    keys = client_keys(kind)
    refused = {name: each.row for name, each in keys.unsupported.items()}
    return {
        **_rows(keys.applied.values(), APPLIED, MEANINGS),
        **_rows(keys.without_effect.values(), NO_EFFECT, {}),
        **_rows(refused.values(), REJECTED, {n: e.advice for n, e in keys.unsupported.items()}),
    }


def _broker_keys() -> dict[str, Key]:
    from trionet.broker.config._broker_config import BROKER_KEYS, is_not_applied
    from trionet.broker.config._broker_keys import APPLIED as APPLIED_ROWS
    from trionet.broker.config._broker_keys import TRIONET_KEYS

    from ._broker_key_docs import MEANINGS

    applied = {row[0] for row in (*APPLIED_ROWS, *TRIONET_KEYS)}
    return {
        **_rows(
            (row for name, row in BROKER_KEYS.items() if is_not_applied(name)), NOT_APPLIED, {}
        ),
        **_rows(
            (
                row
                for name, row in BROKER_KEYS.items()
                if name not in applied and not is_not_applied(name)
            ),
            NO_EFFECT,
            {},
        ),
        **_rows((BROKER_KEYS[name] for name in applied), APPLIED, MEANINGS),
    }


def _rows(
    rows: Iterable[tuple[object, ...]], use: str, meanings: Mapping[str, str]
) -> dict[str, Key]:
    from trionet.protocol import _config_types as config_types

    names = {
        getattr(config_types, name): name
        for name in (
            "BOOLEAN",
            "STRING",
            "INT",
            "SHORT",
            "LONG",
            "DOUBLE",
            "LIST",
            "CLASS",
            "PASSWORD",
        )
    }
    found = {}
    for name, kind, default, _ in rows:
        text = config_types.value_text(default)  # type: ignore[arg-type]
        found[str(name)] = Key(str(name), text, names[kind], use, meanings.get(str(name), ""))
    return found
