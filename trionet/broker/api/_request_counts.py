"""The requests of a broker, counted by API and version, and the errors in their answers.

(Kafka: RequestChannel.Metrics.) A request pays two additions and a store; the rest is worked out
when somebody asks.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ...metrics._request_times import RequestTimes
from ...protocol import error_codes
from ._response_errors import errors_in

# Kafka tells apart who fetches. No broker fetches from this one, so a Fetch is a consumer's.
_NAMES = {"Fetch": ("Fetch", "FetchConsumer")}
# Their handlers know whether anything failed, which is cheaper than to look at every partition.
_COUNT_THEIR_OWN_ERRORS = frozenset({"Fetch", "Produce"})
# How many clients are told apart for a deprecated version: what one calls itself is up to it.
SOFTWARE_MAX = 100
OTHER_SOFTWARE = ("other", "other")


class RouteCounts:
    """The requests of one version of one API.

    Args:
        times: what the requests of the API are timed in.
        is_deprecated: whether Kafka has deprecated the version, so that its clients are counted.
        looks_for_errors: whether :meth:`count_errors` is to be called for every answer.

    Attributes:
        times: of each request the ``request.times``.
        requests: how many there were.
        answers: how many were answered with a message.
        with_errors: how many of the answers had an error.
        errors: how often each error code was in an answer.
        software: requests of a deprecated version by the client's software and its version.
    """

    __slots__ = (
        "answers",
        "errors",
        "is_deprecated",
        "looks_for_errors",
        "requests",
        "software",
        "times",
        "with_errors",
    )

    def __init__(
        self, times: RequestTimes, *, is_deprecated: bool = False, looks_for_errors: bool = True
    ) -> None:
        self.times = times
        self.is_deprecated = is_deprecated
        self.looks_for_errors = looks_for_errors
        self.requests = 0
        self.answers = 0
        self.with_errors = 0
        self.errors: Counter[int] = Counter()
        self.software: Counter[tuple[str, str]] = Counter()

    def count_errors(self, answer: object) -> int:
        """Count the errors in the message of an answer, if there are any; tells the first, or 0."""
        return self.add_errors(errors_in(answer))

    def add_errors(self, found: list[int]) -> int:
        """Count the errors of one response; the first of them, or 0."""
        if not found:
            return 0
        self.with_errors += 1
        self.errors.update(found)
        return found[0]

    def note_deprecated(self, software: tuple[str, str]) -> None:
        """Count a request of a deprecated version by the client's software and its version."""
        is_known = software in self.software or len(self.software) < SOFTWARE_MAX
        self.software[software if is_known else OTHER_SOFTWARE] += 1


class RequestCounts:
    """All counts of one broker.

    It is the source of :class:`trionet.metrics._request_metrics.RequestMetrics`.

    Args:
        apis: the names of the APIs that are served; each is told of from the start.
        deprecated: ``(API's name, version)`` of what Kafka calls deprecated.
    """

    def __init__(self, apis: Iterable[str], deprecated: Iterable[tuple[str, int]] = ()) -> None:
        self._times = {name: RequestTimes(*_NAMES.get(name, (name,))) for name in apis}
        self._deprecated = frozenset(deprecated)
        self._routes: dict[tuple[str, int], RouteCounts] = {}

    def route(self, name: str, version: int) -> RouteCounts:
        """The counts of one version of a served API; the same object each time."""
        key = (name, version)
        counts = self._routes.get(key)
        if counts is None:
            counts = self._routes[key] = RouteCounts(
                self._times[name],
                is_deprecated=key in self._deprecated,
                looks_for_errors=name not in _COUNT_THEIR_OWN_ERRORS,
            )
        return counts

    def calls(self) -> dict[str, int]:
        """Requests of each API that was asked for, all versions together."""
        found: Counter[str] = Counter()
        for (name, _), counts in self._routes.items():
            found[name] += counts.requests
        return dict(found)

    # What RequestMetrics asks.

    def request_times(self) -> Iterable[RequestTimes]:
        return self._times.values()

    def requests(self) -> Mapping[tuple[str, ...], int]:
        return {
            (alias, str(version)): counts.requests
            for (name, version), counts in self._routes.items()
            for alias in self._times[name].names
        }

    def deprecated_requests(self) -> Mapping[tuple[str, ...], int]:
        return {
            (name, str(version), *software): count
            for (name, version), counts in self._routes.items()
            for software, count in counts.software.items()
        }

    def errors(self) -> Mapping[tuple[str, ...], int]:
        found: Counter[tuple[str, ...]] = Counter()
        for (name, _), counts in self._routes.items():
            found[name, error_codes.name_of(error_codes.NONE)] += (
                counts.answers - counts.with_errors
            )
            for code, count in counts.errors.items():
                found[name, error_codes.name_of(code)] += count
        return found
