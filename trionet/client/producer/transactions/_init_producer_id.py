"""The request for the producer id of an idempotent producer (KIP-98).

(Kafka: TransactionManager.InitProducerIdHandler.) Any broker can assign a producer id, so the
request is sent to the least loaded node. No function waits.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable
from typing import Final

import trio

from ....errors import ResponseTooLargeError, TrionetError, UnsupportedVersionError
from ....protocol import error_codes
from ....protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ..._api_errors import api_error
from ..._backoff import ExponentialBackoff
from ...network._kafka_client import KafkaClient
from ...network._responses import ClientResponse
from ._transaction_manager import TransactionManager

logger = logging.getLogger("trionet.client")

# Queued records fail, but the ACL may be added later, so the next record requests an id again.
_REFUSED: Final = frozenset({error_codes.CLUSTER_AUTHORIZATION_FAILED})
# Brokers ignore the timeout without a transactional id (Kafka also sends Integer.MAX_VALUE).
_NO_TIMEOUT_MS: Final = 2**31 - 1


class InitProducerIdHandler:
    """Requests a producer id when the transaction manager needs one.

    Args:
        client: the client that sends the request.
        transaction_manager: the transaction manager, which receives the id.
        retry: the backoff after a failure.
        rng: jitters the backoff.
        on_refused: called with the error if no id was assigned but a later request may succeed;
            fails the queued records.
    """

    def __init__(
        self,
        client: KafkaClient,
        transaction_manager: TransactionManager,
        retry: ExponentialBackoff,
        rng: random.Random,
        on_refused: Callable[[TrionetError], None],
    ) -> None:
        self._client = client
        self._transaction_manager = transaction_manager
        self._retry = retry
        self._rng = rng
        self._on_refused = on_refused
        self._is_in_flight = False
        self._failures = 0
        self._not_before = -math.inf

    def send_if_due(self, now: float) -> float:
        """Send a request if an id is needed and no backoff is in progress.

        Returns:
            When to call this again, if nothing else happens.
        """
        if self._is_in_flight or not self._transaction_manager.needs_id:
            return math.inf
        if now < self._not_before:
            return self._not_before
        node, _ = self._client.least_loaded_node(now)
        if node is None:
            return now + (self._client.next_usable_delay(now) or self._retry.first_seconds)
        if not self._client.ready(node):
            return math.inf  # a poll reports what happens to the connection
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS
        )
        self._is_in_flight = True
        self._client.send(node, request, self._handle_response)
        return math.inf

    def _handle_response(self, response: ClientResponse) -> None:
        self._is_in_flight = False
        body: InitProducerIdResponse | None = response.body
        if body is None:
            if isinstance(response.error, UnsupportedVersionError):
                self._transaction_manager.fail(_no_transaction_manager(response.error))
            else:
                self._try_later()
                if isinstance(response.error, ResponseTooLargeError):
                    self._on_refused(response.error)
            return
        code = body.error_code
        if code == error_codes.NONE:
            self._failures = 0
            self._transaction_manager.take_id(body.producer_id, body.producer_epoch)
        elif code in error_codes.RETRIABLE:
            self._try_later()
        elif code in _REFUSED:
            self._try_later()
            self._on_refused(api_error(code, "the id of an idempotent producer"))
        else:
            self._transaction_manager.fail(api_error(code, "the id of an idempotent producer"))

    def _try_later(self) -> None:
        self._failures += 1
        self._not_before = trio.current_time() + self._retry.seconds(self._failures, self._rng)


def _no_transaction_manager(error: UnsupportedVersionError) -> TrionetError:
    return UnsupportedVersionError(
        f"the brokers do not support idempotent producers: {error}; set enable.idempotence to false"
    )
