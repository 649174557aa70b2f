"""The dispatch of request frames to the handlers of their APIs (Kafka: KafkaApis).

Dispatch and ApiVersions use the same table, so that exactly the served versions are advertised. If
a request cannot be decoded or its version is not served, the connection is closed. The exception is
ApiVersions, which has a response to requests of any version (KIP-511).
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final

import attrs

from ...errors import WireFormatError
from ...net.wire._close_reason import CloseReason
from ...net.wire._transmission import Send
from ...protocol import api_keys
from ...protocol._codec import ApiVersionCodec, lookup
from ...protocol._header import decode_request_header, skip_tags
from ...protocol._lenient_text import is_text_error
from ...protocol._wire import REQUEST_ELEMENTS_MAX
from ...protocol.messages.api_versions import ApiVersion
from ...server._connection import Connection
from ...server._request_channel import CloseConnection, NoOp, Request, Response
from ..model._features import Features
from ..model._request_log_topic import RequestLogTopic
from ._api_versions import AdvertisedApis
from ._call import QUICK_ELEMENTS, Call, NeedsLongCall
from ._long_calls import LongCalls
from ._request_counts import RequestCounts, RouteCounts
from ._request_logger import log_request
from ._request_logger import logger as _request_log

Handle = Callable[[Any, Call], Awaitable[Any]]
"""A handler: ``async (request message, call) -> response``.

It returns a message, which is then encoded; a :data:`.Response`, which is passed on unchanged; or
None if the response is sent later."""

Intercept = Callable[[Any, Call, Handle], Awaitable[Any]]
"""An interceptor: ``async (request message, call, handle) -> response``.

It is called instead of the API's ``handle``, which it may call, and returns what a :data:`Handle`
may return."""


@attrs.frozen(eq=False)
class Api:
    """A served API.

    Attributes:
        key: Kafka's API key.
        min_version: the lowest served version.
        max_version: the highest served version, which a released Kafka version also serves.
        handle: handles one call. Before :meth:`bind`, it takes the state of the node as an
            additional first argument.
        never_waits: whether ``handle`` has no checkpoints and leaves slow work to other tasks.
        only_responds: whether a call has no effect that another call could observe.
        quick_elements: the maximum number of elements in a request that is decoded in one step;
            larger requests become long calls.
    """

    key: int
    min_version: int
    max_version: int
    handle: Callable[..., Awaitable[Any]]
    never_waits: bool = False
    only_responds: bool = False
    quick_elements: int = QUICK_ELEMENTS

    def bind(self, broker: Any) -> Api:
        """Return the API with its handler bound to the state of a node."""
        return attrs.evolve(self, handle=partial(self.handle, broker))


def serves(
    key: int,
    min_version: int,
    max_version: int,
    *,
    never_waits: bool = False,
    only_responds: bool = False,
    quick_elements: int = QUICK_ELEMENTS,
) -> Callable[[Callable[..., Awaitable[Any]]], Api]:
    """Return a decorator that turns a handler into an :class:`Api` with the given attributes."""
    return lambda handle: Api(
        key, min_version, max_version, handle, never_waits, only_responds, quick_elements
    )


API_VERSIONS: Final = Api(api_keys.API_VERSIONS, 0, 4, AdvertisedApis.handle, only_responds=True)

RESPONSES = (bytes, Send, NoOp, CloseConnection)
"""The types that a handler may return besides a message."""


class _Route:
    """An API version that has been requested at least once, with its codec and counts."""

    __slots__ = (
        "codec",
        "counts",
        "decode",
        "handle",
        "has_tagged_header",
        "only_responds",
        "quick_elements",
    )

    def __init__(
        self, codec: ApiVersionCodec, api: Api, counts: RouteCounts, elements_max: int
    ) -> None:
        self.codec = codec
        self.counts = counts
        self.decode = codec.decode_request
        self.handle = api.handle
        self.only_responds = api.only_responds
        # Any, so that mypyc keeps it boxed: the decoders are not compiled.
        self.quick_elements: Any = min(elements_max, api.quick_elements)
        self.has_tagged_header = codec.request_header_version == 2


class Apis:
    """The SocketServer's request handler: decodes requests and calls the handlers of their APIs.

    Args:
        apis: the served APIs, except ApiVersions.
        long_calls: runs calls that would block the event loop.
        elements_max: the maximum number of array elements, arrays and tags in one request
            (``request.max.elements``).
        request_log_topic: the request log's own topic; requests that name it are not logged.
        features: the feature levels of the cluster, which ApiVersions reports.

    Attributes:
        advertised: the handler of ApiVersions, which holds the served version ranges.
        long_calls: the long calls of the node.
        counts: the numbers of requests and errors, by API and version.
        interceptor: called for every decoded call instead of the API's handler, for tests.
    """

    def __init__(
        self,
        apis: Iterable[Api],
        long_calls: LongCalls,
        elements_max: int = REQUEST_ELEMENTS_MAX,
        request_log_topic: RequestLogTopic | None = None,
        features: Features | None = None,
    ) -> None:
        self.advertised = AdvertisedApis(features)
        served = {api.key: api for api in (API_VERSIONS.bind(self.advertised), *apis)}
        self._apis = {key: served[key] for key in sorted(served)}
        self.advertised.ranges = [
            ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
            for api in self._apis.values()
        ]
        self._never_wait = frozenset(key for key, api in self._apis.items() if api.never_waits)
        self.long_calls = long_calls
        self._scheduler = long_calls.scheduler
        self._elements_max = elements_max
        self._routes: dict[tuple[int, int], _Route] = {}
        self.counts = RequestCounts(api_keys.name_of(key) for key in self._apis)
        self.interceptor: Intercept | None = None
        self._own_topic = request_log_topic

    async def handle(self, request: Request) -> Response | None:
        """Handle a request frame; see :data:`trionet.server._handler_pool.Handler`."""
        payload = request.payload
        try:
            key, version, correlation_id, client_id, position = decode_request_header(payload)
            route = self._routes.get((key, version)) or self._find_route(key, version)
            if route is None:
                return self._unsupported(key, version, correlation_id, request)
            if route.has_tagged_header:
                position = skip_tags(payload, position)
        except WireFormatError as error:
            return CloseConnection(CloseReason.INVALID_REQUEST, str(error))
        try:
            message = route.decode(payload, position, route.quick_elements)
        except WireFormatError as error:
            # The request may be valid but too long to decode in one step, or need another decoder.
            if len(payload) - position <= route.quick_elements and not is_text_error(error):
                return CloseConnection(CloseReason.INVALID_REQUEST, str(error))
            call = self._begin(route, correlation_id, client_id, request)
            self.long_calls.start(call, partial(self._serve_long, route, call, position))
            return None
        call = self._begin(route, correlation_id, client_id, request)
        try:
            response = await self._called(route, call, message)
        except NeedsLongCall:
            # Never raised under an interceptor, which sets needs_lists. The request is already
            # logged, so the handler is called directly.
            self.long_calls.start(call, partial(route.handle, message, call))
            return None
        if response is None or isinstance(response, RESPONSES):
            return response
        return call.encode(response)

    def _begin(
        self, route: _Route, correlation_id: int, client_id: str | None, request: Request
    ) -> Call:
        counts = route.counts
        counts.requests += 1
        request.times = counts.times
        request.kind = route.codec
        request.client_id = client_id
        connection: Connection = request.channel.attachment
        connection.client_id = client_id
        if counts.is_deprecated:
            counts.note_deprecated(connection.client_software)
        return Call(
            route.codec,
            correlation_id,
            client_id,
            request,
            counts,
            self._scheduler,
            route.only_responds,
        )

    def _called(self, route: _Route, call: Call, message: Any) -> Awaitable[Any]:
        """Call the handler or the interceptor, and return an awaitable of the response."""
        request_log_topic = self._own_topic
        if request_log_topic is not None and request_log_topic.is_named_in(
            call.codec.api_key, message
        ):
            call.request.is_left_out = True
        if _request_log.isEnabledFor(logging.DEBUG):
            log_request(call, message)
        interceptor = self.interceptor
        if interceptor is None:
            return route.handle(message, call)
        call.needs_lists = True
        return interceptor(message, call, route.handle)

    async def _serve_long(self, route: _Route, call: Call, position: int) -> Any:
        message = await self.long_calls.decode(call, position, self._elements_max)
        return await self._called(route, call, message)

    def never_waits(self, request: Request) -> bool:
        """Return whether :meth:`handle` completes a request without a checkpoint."""
        # An interceptor may wait. A payload too short for a key is rejected without waiting.
        return self.interceptor is None and (
            int.from_bytes(request.payload[:2], "big") in self._never_wait
        )

    def _find_route(self, key: int, version: int) -> _Route | None:
        api = self._apis.get(key)
        if api is None or not api.min_version <= version <= api.max_version:
            return None
        codec = lookup(key, version)
        assert codec is not None, f"no codec for a version that {api} serves"
        counts = self.counts.route(api_keys.name_of(key), version)
        route = self._routes[key, version] = _Route(codec, api, counts, self._elements_max)
        return route

    def _unsupported(
        self, key: int, version: int, correlation_id: int, request: Request
    ) -> Response:
        if key == api_keys.API_VERSIONS:
            # The body cannot be decoded. The response is of version 0, which every client can
            # read (KIP-511).
            codec = lookup(key, 0)
            assert codec is not None
            counts = self.counts.route(api_keys.name_of(key), 0)
            call = Call(codec, correlation_id, None, request, counts, self._scheduler)
            return call.encode(self.advertised.response(None, 0))
        api = self._apis.get(key)
        served = f"{api.min_version} to {api.max_version}" if api else "none"
        return CloseConnection(
            CloseReason.UNSUPPORTED_VERSION,
            f"{api_keys.name_of(key)} version {version} is not served; served versions: {served}",
        )
