"""The pages of a metrics listener: ``/metrics`` for Prometheus, ``/snapshot`` for other clients.

``/health`` and ``/ready`` are for what starts and stops brokers, or sends clients to them.

``/snapshot`` is a JSON object with all metrics and the first page of each list.
``/snapshot/NAME?before=NUMBER&limit=COUNT`` is a later page of a list. Both contain the version of
their format, which is incremented when a meaning changes, but not for additions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from http import HTTPStatus

import attrs

from ...metrics import _prometheus as prometheus
from ...metrics._registry import Family, Sample, Snapshot
from ._http_exchange import HttpRequest, Refused
from ._metrics_listener import Page
from ._snapshot_sections import Section, SectionPage, Stream

SNAPSHOT_VERSION = 1
LIMIT_MAX = 500
LIMIT = 100

_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"
_INDEX = """/metrics   for Prometheus
/snapshot  everything, as JSON
/health    200 as long as the loop runs
/ready     200 as long as connections are accepted, otherwise 503
"""
#: The pages that need no token.
OPEN_PATHS = frozenset(("/health", "/ready"))

Order = Callable[[Mapping[str, str]], object]
"""``(parameters) -> value``: performs an action and returns the result as a JSON value.

It raises :class:`~trionet.server.metrics._http_exchange.Refused` if it cannot.
"""


@attrs.frozen
class MetricsPages:
    """The pages and actions that a metrics listener serves.

    Args:
        snapshot: takes a snapshot of the metrics.
        about: returns additional members of ``/snapshot``, by name, as JSON values.
        sections: the lists of ``/snapshot``, by name.
        orders: the actions that clients can request, by path.
        streams: the lists that are about what the parameters of a request name, by name. They are
            no part of ``/snapshot``.
        is_ready: returns whether the server accepts connections.
        excluded: patterns of the names of metrics that ``/metrics`` leaves out, in which ``*``
            stands for any characters.
    """

    _snapshot: Callable[[], Snapshot]
    _about: Callable[[], Mapping[str, object]]
    _sections: Mapping[str, Section]
    _orders: Mapping[str, Order] = attrs.field(factory=dict)
    _streams: Mapping[str, Stream] = attrs.field(factory=dict)
    _is_ready: Callable[[], bool] = attrs.field(kw_only=True)
    _excluded: Sequence[str] = attrs.field(default=(), kw_only=True)

    def find(self, request: HttpRequest) -> Page:
        """Return the page at a path, or perform the action at the path.

        Raises:
            Refused: the path does not exist, or a parameter is invalid.
        """
        path = request.path
        if request.is_order:
            order = self._orders.get(path)
            if order is None:
                available = ", ".join(self._orders)
                why = f"no action at this path; available: {available}"
                raise Refused(HTTPStatus.NOT_FOUND, why)
            done = {"version": SNAPSHOT_VERSION, "done": order(request.parameters)}
            return Page(_JSON, iter([_json(done) + "\n"]))
        if path == "/metrics":
            is_open = request.takes_openmetrics
            kind = prometheus.OPENMETRICS_TYPE if is_open else prometheus.CONTENT_TYPE
            return Page(kind, self._metrics(is_openmetrics=is_open))
        if path == "/snapshot":
            return Page(_JSON, self._everything(_limit(request)))
        section = self._find_section(request)
        if section is not None:
            return Page(_JSON, _pages(section, _limit(request), _number(request, "before")))
        if path == "/ready" and not self._is_ready():
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "stopping")
        if path in OPEN_PATHS:
            return Page(_TEXT, iter(["ok\n"]))
        if path == "/":
            return Page(_TEXT, iter([_INDEX]))
        raise Refused(HTTPStatus.NOT_FOUND, "no such page; see / for the pages")

    def _find_section(self, request: HttpRequest) -> Section | None:
        name = request.path.removeprefix("/snapshot/")
        if name == request.path:
            return None
        if name in self._streams:
            return self._streams[name](request.parameters)
        return self._sections.get(name)

    def _metrics(self, *, is_openmetrics: bool) -> Iterator[str]:
        shown = {
            name: family
            for name, family in self._snapshot().items()
            if not any(fnmatchcase(name, pattern) for pattern in self._excluded)
        }
        yield from prometheus.exposition(shown, is_openmetrics=is_openmetrics)

    def _everything(self, limit: int) -> Iterator[str]:
        snapshot = self._snapshot()
        yield f'{{"version":{SNAPSHOT_VERSION},"now":{json.dumps(snapshot.now)}'
        for name, value in self._about().items():
            yield f",{json.dumps(name)}:{_json(value)}"
        for name, section in self._sections.items():
            yield f",{json.dumps(name)}:{{"
            yield from _members(section(limit, None), limit)
            yield "}"
        separator = ',"metrics":{'
        for family in snapshot.values():
            yield f"{separator}{json.dumps(family.metric.name)}:{_json(_family(family))}"
            separator = ","
        yield "}}\n"


def _pages(section: Section, limit: int, before: int | None) -> Iterator[str]:
    yield f'{{"version":{SNAPSHOT_VERSION},'
    yield from _members(section(limit, before), limit)
    yield "}\n"


def _members(page: SectionPage, limit: int) -> Iterator[str]:
    """Yield the members of a page's JSON object, row by row: some are converted only then."""
    yield f'"total":{page.total},"rows":['
    following = None
    for at, row in enumerate(page.rows):
        yield f",{_json(row)}" if at else _json(row)
        following = row["number"]
    yield f'],"next":{_json(following if len(page.rows) == limit else None)}'


def _family(family: Family) -> dict[str, object]:
    metric = family.metric
    return {
        "kind": metric.kind,
        "help": metric.help,
        "kafka": metric.kafka,
        "samples": [_sample(metric.labels, sample) for sample in family.samples],
    }


def _sample(names: tuple[str, ...], sample: Sample) -> dict[str, object]:
    labels = {name: value for name, value in zip(names, sample.labels, strict=True) if value}
    if sample.quantile:
        labels["quantile"] = sample.quantile
    # JSON has neither infinity nor NaN.
    value = sample.value if math.isfinite(sample.value) else None
    found: dict[str, object] = {"labels": labels, "value": value}
    if sample.suffix:
        found["of"] = sample.suffix.removeprefix("_")
    return found


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _limit(request: HttpRequest) -> int:
    found = _number(request, "limit")
    limit = LIMIT if found is None else found
    if not 1 <= limit <= LIMIT_MAX:
        raise Refused(HTTPStatus.BAD_REQUEST, f"invalid limit; allowed: 1 to {LIMIT_MAX}")
    return limit


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.parameters.get(name)
    if text is None:
        return None
    # 19 digits fit every number here; the time of int() grows with the square of the length.
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise Refused(HTTPStatus.BAD_REQUEST, f"invalid {name}; expected a whole number")
    return int(text)
