"""Counts requests by API and version, and errors in responses.

(Kafka: RequestChannel.Metrics.) Counting a request takes two additions and one assignment. All
other values are computed when metrics are read.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ...metrics._request_times import RequestTimes
from ...protocol import error_codes
from ._response_errors import errors_in

# Kafka has separate metrics for consumers and followers. This broker has no followers.
_NAMES = {"Fetch": ("Fetch", "FetchConsumer")}
# These handlers count their own errors, which is cheaper than searching every partition.
_COUNT_THEIR_OWN_ERRORS = frozenset({"Fetch", "Produce"})
# The maximum number of distinct clients per deprecated version; clients choose their own names.
SOFTWARE_MAX = 100
OTHER_SOFTWARE = ("other", "other")


class RouteCounts:
    """The request and error counts of one version of one API.

    Args:
        times: collects the durations of the API's requests.
        is_deprecated: whether Kafka has deprecated the version, so that its clients are counted.
        looks_for_errors: whether every response must be passed to :meth:`count_errors`.

    Attributes:
        times: the durations of the API's requests.
        requests: the number of requests.
        responses: the number of response messages.
        with_errors: the number of responses with at least one error.
        errors: the number of occurrences of each error code in responses.
        software: the number of requests by client software name and version, if the version is
            deprecated.
    """

    __slots__ = (
        "errors",
        "is_deprecated",
        "looks_for_errors",
        "requests",
        "responses",
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
        self.responses = 0
        self.with_errors = 0
        self.errors: Counter[int] = Counter()
        self.software: Counter[tuple[str, str]] = Counter()

    def count_errors(self, response: object) -> int:
        """Count the errors in a response message, and return the first error code, or 0."""
        return self.add_errors(errors_in(response))

    def add_errors(self, found: list[int]) -> int:
        """Count the errors of one response, and return the first error code, or 0."""
        if not found:
            return 0
        self.with_errors += 1
        self.errors.update(found)
        return found[0]

    def note_deprecated(self, software: tuple[str, str]) -> None:
        """Count a request of a deprecated version by client software name and version."""
        is_known = software in self.software or len(self.software) < SOFTWARE_MAX
        self.software[software if is_known else OTHER_SOFTWARE] += 1


class RequestCounts:
    """The request counts of a node, for :class:`.RequestMetrics`.

    Args:
        apis: the names of the served APIs, which are reported even before their first request.
        deprecated: the deprecated versions, as ``(API name, version)``.
    """

    def __init__(self, apis: Iterable[str], deprecated: Iterable[tuple[str, int]] = ()) -> None:
        self._times = {name: RequestTimes(*_NAMES.get(name, (name,))) for name in apis}
        self._deprecated = frozenset(deprecated)
        self._routes: dict[tuple[str, int], RouteCounts] = {}

    def route(self, name: str, version: int) -> RouteCounts:
        """Return the counts of an API version: always the same object for the same version."""
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
        """Return the total number of requests of each API that has been requested."""
        found: Counter[str] = Counter()
        for (name, _), counts in self._routes.items():
            found[name] += counts.requests
        return dict(found)

    # The interface of RequestSource.

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
                counts.responses - counts.with_errors
            )
            for code, count in counts.errors.items():
                found[name, error_codes.name_of(code)] += count
        return found
