"""Which client a deviation is of, or whether all clients have a part in it.

If one client gets errors, so does the API that it uses, its listener, and the broker; and if all
requests are slow, so are those of each client. The rows of a minute are therefore compared with
those of the wholes that they are parts of. A client is the culprit of a whole if it makes most of
the deviation, and more of it than its size explains. A client that deviates as the others do
has its part of what they all have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from .. import _signals as levels
from .._signals import ALL_APIS, WIDE

#: A client is the culprit from this share of a deviation on.
MOST: Final = 0.5
#: It deviates this many times as much as the others, each compared with its own size.
STANDS_OUT: Final = 2.0
#: So many clients may be culprits together if they explain so much of a deviation.
FEW: Final = 3
EXPLAINED: Final = 0.7
#: What so many APIs of a listener have, others of it have, too, even if they are not reported: what
#: comes again is not.
MANY_APIS: Final = 3

_DIMENSIONS: Final = ("api_key", "client_id", "listener", "reason")
#: The levels of the parts of a whole.
_PARTS: Final[Mapping[int, int]] = {
    levels.BROKER: levels.CLIENT,
    levels.LISTENER: levels.CLIENT,
    levels.API: levels.SERIES,
    levels.CLOSED: levels.CLOSED_OF_CLIENT,
}

_SUMS: Final[Mapping[int, int]] = {levels.CLIENT: 1, levels.LISTENER: 1, levels.BROKER: 2}

Anomaly = Mapping[str, Any]
#: API key, client id, listener and reason; None where it is not limited to one.
Scope = tuple[Any, ...]
WHOLE_BROKER: Final[Scope] = (None,) * len(_DIMENSIONS)


def scope(anomaly: Anomaly) -> Scope:
    """Return what an anomaly is limited to."""
    api_key = None if anomaly["api_key"] == ALL_APIS else anomaly["api_key"]
    return (api_key, *(anomaly[name] for name in _DIMENSIONS[1:]))


def has_part(whole: Scope, part: Scope) -> bool:
    """Return whether a scope contains another one, or is the same."""
    return all(a is None or a == b for a, b in zip(whole, part, strict=True))


@attrs.frozen
class Deviation:
    """What anomalies must have in common to be of one cause, besides their scope.

    Attributes:
        measure: the measure; ``time`` for all percentiles of times.
        is_more: whether there is more than usual.
        client_id: the culprit; None if it is no single client.
        phase: the phase of a time that all clients have.
    """

    measure: str
    is_more: bool
    client_id: str | None = None
    phase: str | None = None

    @classmethod
    def of(cls, anomaly: Anomaly) -> Deviation:
        """Return the deviation of an anomaly, without a culprit."""
        measure = anomaly["measure"]
        name = "time" if measure.startswith("broker_") else measure
        return cls(name, anomaly["score"] > 0)

    def of_client(self, client: str) -> Deviation:
        """Return the deviation of a client."""
        return attrs.evolve(self, client_id=client, phase=None)


@attrs.frozen
class Attributed:
    """An anomaly, or what makes most of one, and the culprit.

    Attributes:
        row: the anomaly.
        deviation: what it is, with the culprit.
        scope: what it is limited to, with the culprit.
        whole: the anomaly of all clients that this one of a client is an ordinary part of, or None.
    """

    row: Anomaly
    deviation: Deviation
    scope: Scope
    whole: Anomaly | None = None

    @property
    def sums(self) -> int:
        """0 if it is of one API, or more the more there is of which it may be the sum."""
        return _SUMS.get(self.row["level"], 0)


def attributed(rows: Sequence[Anomaly]) -> Iterator[Attributed]:
    """Find the culprits of a minute.

    Args:
        rows: the anomalies of the minute, and the parts that :mod:`.._anomalies` has found.

    Yields:
        The anomalies of wholes first, then those of clients, then the parts of the culprits.
    """
    by_deviation: dict[Deviation, list[Anomaly]] = {}
    for row in rows:
        by_deviation.setdefault(Deviation.of(row), []).append(row)
    for deviation, found in by_deviation.items():
        yield from _attributed(deviation, found)


def _attributed(deviation: Deviation, rows: Sequence[Anomaly]) -> Iterator[Attributed]:
    wholes = [each for each in rows if each["level"] in WIDE]
    clients = [each for each in rows if each["level"] not in WIDE]
    parts: dict[tuple[Any, ...], list[Anomaly]] = {}
    for row in [*(each for each in clients if not each["is_part"]), *_greatest(clients)]:
        parts.setdefault(_key_of_whole(row), []).append(row)
    culprit_of = [(row, _culprit(row, _parts_of(row, parts))) for row in wholes]
    of_all = [row for row, culprit in culprit_of if culprit is None]
    culprits = set()
    for row, culprit in culprit_of:
        # The only client of an API has all of it.
        if culprit is None or _alike(row, of_all) is not None:
            yield Attributed(row, attrs.evolve(deviation, phase=row["phase"]), scope(row))
        else:
            culprits.add(culprit)
            yield Attributed(row, deviation.of_client(culprit), _limited(scope(row), culprit))
    for row in clients:
        client = row["client_id"]
        if row["is_part"] and client not in culprits:
            continue
        whole = None if row["is_part"] else _ordinary_in(row, of_all)
        yield Attributed(row, deviation.of_client(client), scope(row), whole)


def is_of_many_apis(scopes: Iterable[Scope], listener: str | None) -> bool:
    """Return whether scopes have so many APIs of a listener that it is of all of them."""
    found = {(each[0], each[2]) for each in scopes if each[0] is not None}
    return len({api for api, _ in found}) >= MANY_APIS and any(on == listener for _, on in found)


def _limited(whole: Scope, client: str) -> Scope:
    return (whole[0], client, *whole[2:])


def _greatest(rows: Iterable[Anomaly]) -> Iterable[Anomaly]:
    """Return the greatest part of each whole; each task has found one among its own clients."""
    parts = (each for each in rows if each["is_part"])
    greatest: dict[tuple[Any, ...], Anomaly] = {}
    for row in sorted(parts, key=lambda each: (-abs(each["excess"]), each["client_id"])):
        greatest.setdefault(_key_of_whole(row), row)
    return greatest.values()


def _key_of_whole(part: Anomaly) -> tuple[Any, ...]:
    return part["level"], part["api_key"], part["listener"], part["reason"]


def _parts_of(
    whole: Anomaly, parts: Mapping[tuple[Any, ...], Sequence[Anomaly]]
) -> Sequence[Anomaly]:
    level = _PARTS.get(whole["level"])
    if whole["level"] == levels.BROKER:
        return [each for key, found in parts.items() if key[0] == level for each in found]
    return parts.get((level, whole["api_key"], whole["listener"], whole["reason"]), ())


def _culprit(whole: Anomaly, rows: Iterable[Anomaly]) -> str | None:
    """Return the client that makes most of the deviation of a whole; None if there is none."""
    clients: dict[str, tuple[float, float]] = {}
    for row in rows:
        excess, base = clients.get(row["client_id"], (0.0, 0.0))
        clients[row["client_id"]] = (excess + abs(row["excess"]), base + row["base"])
    if not clients:
        return None
    sums = sum(excess for excess, _ in clients.values()), sum(base for _, base in clients.values())
    all_of_it = max(abs(whole["excess"]), sums[0])
    client, most = max(clients.items(), key=lambda item: item[1][0])
    if most[0] >= MOST * all_of_it and _is_far_from(most, _without(whole, most)):
        return client
    if len(clients) <= FEW and sums[0] >= EXPLAINED * all_of_it:
        rest = _without(whole, sums)
        if rest[1] > 0 and all(_is_far_from(each, rest) for each in clients.values()):
            return client
    return None


def _without(whole: Anomaly, part: tuple[float, float]) -> tuple[float, float]:
    excess = max(0.0, abs(whole["excess"]) - part[0])
    return excess, max(0.0, whole["base"] - part[1])


def _is_far_from(part: tuple[float, float], rest: tuple[float, float]) -> bool:
    return _rate(part) >= STANDS_OUT * _rate(rest)


def _rate(amount: tuple[float, float]) -> float:
    # What is new has no usual size. By one more a minute, two new clients are no different.
    excess, base = amount
    return excess / max(base, 1.0)


def _ordinary_in(row: Anomaly, wholes: Sequence[Anomaly]) -> Anomaly | None:
    """Return the whole of which a client has no more than the others; None if there is none."""
    part = abs(row["excess"]), row["base"]
    for whole in wholes:
        if has_part(scope(whole), scope(row)) and not _is_far_from(part, _without(whole, part)):
            return whole
    return _alike(row, wholes)


def _alike(row: Anomaly, wholes: Iterable[Anomaly]) -> Anomaly | None:
    """Return the whole of another API that deviates as much, if all of the listener does."""
    alike = [each for each in wholes if each["phase"] == row["phase"]]
    if row["api_key"] == ALL_APIS or not is_of_many_apis(map(scope, alike), row["listener"]):
        return None
    part = abs(row["excess"]), row["base"]
    for whole in alike:
        if not _is_far_from(part, (abs(whole["excess"]), whole["base"])):
            return whole
    return None
