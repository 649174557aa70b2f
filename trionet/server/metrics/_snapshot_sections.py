"""The lists of a snapshot, in pages: open connections, recently closed connections, log lines.

A page starts with the newest row. To request the next page, a client sends the number of the last
row, so that new rows do not shift rows between pages.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

import attrs
import trio

from ...metrics._log_ring import LogRing
from ...metrics._request_times import now_ns
from ...net._channel import Channel
from .._closed_connections import ClosedConnections
from .._connection import Connection
from .._processor import Processor
from .._request_channel import Request
from ._connection_phase import phase_of

NS = 1e9

Row = Mapping[str, object]
"""One row of a section, as a JSON object; it has a ``number``."""


@attrs.frozen
class SectionPage:
    """A page of a section.

    Attributes:
        total: the number of rows in the section.
        rows: the rows of this page, newest first; costly ones are converted when they are read.
    """

    total: int
    rows: Sequence[Row]


Section = Callable[[int, int | None], SectionPage]
"""``(count_max, before) -> page``: rows with a number below ``before``, or the newest rows."""

Stream = Callable[[Mapping[str, str]], Section]
"""``(parameters) -> section``: a list that costs something from a request for it on, for a while.

It is about what the parameters name, and raises
:class:`~trionet.server.metrics._http_exchange.Refused` if they name nothing.
"""


def connections_page(
    processors: Callable[[], Iterable[Processor]],
    name_of: Callable[[Request], str | None],
    count_max: int,
    before: int | None,
) -> SectionPage:
    """Return a page of the open connections, starting with the last processor's connections.

    Args:
        processors: returns the current processors.
        name_of: returns the name of a request; None if it is not (or not yet) known.
        count_max: the maximum number of rows.
        before: return only rows with a lower number; None for the newest rows.
    """
    now = trio.current_time()
    found = sorted(processors(), key=lambda processor: processor.id, reverse=True)
    rows: list[Row] = []
    for processor in found:
        channels = list(processor.selector.channels)
        end = len(channels)
        if before is not None:
            end = bisect_left(channels, before, key=lambda each: _number(processor, each))
        wanted = channels[max(0, end - count_max + len(rows)) : end]
        rows += [_connection_row(channel, processor, now, name_of) for channel in reversed(wanted)]
    return SectionPage(sum(len(processor.selector.channels) for processor in found), rows)


#: The maximum number of channels that a summary examines, a few milliseconds of work.
CHANNELS_EXAMINED_MAX: Final = 1_000


def channels_summary(processors: Iterable[Processor]) -> dict[str, object]:
    """Count the open channels by what they do or wait for.

    Args:
        processors: the current processors.

    Returns:
        The number of open channels as ``total``, and of those that were examined as ``examined``:
        with thousands, the rest would hold up the loop. Of these, the number of ``muted`` ones, the
        number of frames in them that are ``staged``, the number of channels ``with_staged`` frames,
        and the number of channels in each phase as ``phases``.
    """
    total = muted = staged = with_staged = 0
    phases: Counter[str] = Counter()
    for processor in processors:
        channels = processor.selector.channels
        for channel in islice(channels, max(0, CHANNELS_EXAMINED_MAX - total)):
            phases[phase_of(channel, processor.selector)] += 1
            muted += channel.muting.is_muted
            staged += len(channel.staged)
            with_staged += bool(channel.staged)
        total += len(channels)
    return {
        "total": total,
        "examined": phases.total(),
        "muted": muted,
        "staged": staged,
        "with_staged": with_staged,
        "phases": {str(phase): count for phase, count in phases.items()},
    }


def software_of(channel: Channel) -> tuple[str, str]:
    """Return the client's software name and version, which may be known before authentication."""
    name, version = getattr(channel.authenticator, "client_software", ("", ""))
    if name and version:
        return name, version
    connection: Connection = channel.attachment
    return connection.client_software


def _number(processor: Processor, channel: Channel) -> int:
    """Return a number that is higher for newer connections, like the index in the channel id."""
    return (processor.id << 32) + int(channel.id.rpartition("-")[2])


def _connection_row(
    channel: Channel,
    processor: Processor,
    now: float,
    name_of: Callable[[Request], str | None],
) -> Row:
    connection: Connection = channel.attachment
    request: Request | None = connection.request
    software, version = software_of(channel)
    cipher, protocol = channel.tls.cipher if channel.tls is not None else (None, None)
    return {
        "number": _number(processor, channel),
        "id": channel.id,
        "listener": processor.endpoint.listener_name,
        "processor": processor.id,
        "peer": connection.peer,
        "principal": str(channel.principal),
        "software": software,
        "software_version": version,
        "client_id": connection.client_id,
        "cipher": cipher,
        "protocol": protocol,
        "age_seconds": now - connection.opened_at,
        "idle_seconds": now - channel.last_used_at,
        "requests": connection.requests,
        "bytes_received": channel.bytes_received,
        "bytes_sent": channel.bytes_sent,
        "is_muted": channel.muting.is_muted,
        "mute_state": channel.muting.state.name,
        "phase": phase_of(channel, processor.selector),
        "request": None if request is None else name_of(request),
        "request_seconds": None if request is None else (now_ns() - request.received_ns) / NS,
        "staged": len(channel.staged),
    }


# The attributes of a closed connection that are reported unchanged.
_UNCHANGED = (
    *("id", "listener", "processor", "peer", "principal", "detail"),
    *("age_seconds", "requests", "bytes_received", "bytes_sent"),
)


def closed_page(closed: ClosedConnections, count_max: int, before: int | None) -> SectionPage:
    """Return a page of recently closed connections, numbered in the order in which they closed."""
    now = trio.current_time()
    rows: list[Row] = [
        {
            "number": number,
            "reason": connection.reason.name,
            "reason_text": connection.reason.value,
            "closed_seconds_ago": now - connection.closed_at,
            **{name: getattr(connection, name) for name in _UNCHANGED},
        }
        for number, connection in closed.page(count_max, before)
    ]
    return SectionPage(len(closed), rows)


def log_page(ring: LogRing, count_max: int, before: int | None) -> SectionPage:
    """Return a page of the most recent log lines."""
    return SectionPage(len(ring), [attrs.asdict(line) for line in ring.page(count_max, before)])
