"""What a client has done after a fault: retried, reconnected, asked for metadata, or nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from .._seen_requests import Fault, SeenRequest

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

#: The requests with which a client begins a connection.
_OF_CONNECTING: Final = ("ApiVersions", "SaslHandshake", "SaslAuthenticate")
#: How many requests of a client after a fault are searched for its reaction.
LATER_MAX: Final = 200


class Timeline:
    """The requests of each client, to find out what followed on one of them.

    Args:
        requests: the requests in the order of arrival.

    Attributes:
        of_faults: the requests to which each fault was applied, in order.
    """

    def __init__(self, requests: Iterable[SeenRequest]) -> None:
        self.of_faults: dict[Fault, list[SeenRequest]] = {}
        self._of_clients: dict[str, list[SeenRequest]] = {}
        self._places: dict[SeenRequest, tuple[str, int]] = {}
        for request in requests:
            client = request.client_id or request.connection
            of_client = self._of_clients.setdefault(client, [])
            if request.faults:
                self._places[request] = client, len(of_client)
                for fault in request.faults:
                    self.of_faults.setdefault(fault, []).append(request)
            of_client.append(request)

    def after(self, request: SeenRequest) -> Sequence[SeenRequest]:
        """Return the next requests of the same client after one with a fault."""
        client, index = self._places[request]
        return self._of_clients[client][index + 1 : index + 1 + LATER_MAX]


def reaction(request: SeenRequest, later: Sequence[SeenRequest], opened: Collection[str]) -> str:
    """Describe what the client of a request did next.

    A client is known by its client id, or else by its connection. A request of the same API about
    the same topics and groups counts as a retry.

    Args:
        request: the request to which a fault was applied.
        later: the client's requests after it, in the order of arrival.
        opened: the ids of the connections that are open.
    """
    if not later:
        return "nothing yet" if request.connection in opened else "connection closed"
    retry = next((each for each in later if _is_retry(request, each)), None)
    first = next((each for each in later if each.api not in _OF_CONNECTING), None)
    parts = []
    if later[0].connection != request.connection and later[0].api in _OF_CONNECTING:
        parts.append("reconnected")
    if first is not None and first is not retry:
        parts.append(f"{first.api} after {_duration(request, first)}")
    if retry is not None:
        # After a response without errors, as after a delay, it is no retry.
        how = f"next {retry.api}" if request.errors == () else "retried"
        parts.append(f"{how} after {_duration(request, retry)}: {_outcome(retry)}")
    return ", ".join(parts)


def _is_retry(request: SeenRequest, other: SeenRequest) -> bool:
    return (
        request.api == other.api
        and set(request.topics) == set(other.topics)
        and request.groups == other.groups
        and request.transactional_ids == other.transactional_ids
    )


def _duration(request: SeenRequest, other: SeenRequest) -> str:
    ms = other.time_ms - request.time_ms
    return f"{ms} ms" if ms < 10_000 else f"{ms / 1000:.0f} s"


def _outcome(request: SeenRequest) -> str:
    if request.errors is None:
        return "no response yet"
    return ", ".join(dict.fromkeys(request.errors)) or "ok"
