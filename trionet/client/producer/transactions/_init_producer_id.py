"""Asks a broker for the id of an idempotent producer (KIP-98).

(Kafka: TransactionManager.InitProducerIdHandler.) Any broker gives one; the one that answers
soonest is asked. Nothing here waits.
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
from ...requests._response import ClientResponse
from ._transaction_manager import Idempotence

logger = logging.getLogger("trionet.client")

# What is waiting fails, but rights may be given: the next record asks again.
_REFUSED: Final = frozenset({error_codes.CLUSTER_AUTHORIZATION_FAILED})
# The broker does not look at it without a transactional id (Kafka: Integer.MAX_VALUE, too).
_NO_TIMEOUT_MS: Final = 2**31 - 1


class ProducerIdAsker:
    """See the module.

    Args:
        client: who carries the question.
        idempotence: takes the answer.
        retry: the wait after a failure.
        chance: what blurs it.
        on_refused: told if the producer may not have an id.
    """

    def __init__(
        self,
        client: KafkaClient,
        idempotence: Idempotence,
        retry: ExponentialBackoff,
        chance: random.Random,
        on_refused: Callable[[TrionetError], None],
    ) -> None:
        self._client = client
        self._idempotence = idempotence
        self._retry = retry
        self._chance = chance
        self._on_refused = on_refused
        self._is_asking = False
        self._failures = 0
        self._not_before = -math.inf

    def ask_if_due(self, now: float) -> float:
        """Ask if there is no id.

        Returns:
            When this has to be called again, if nothing else happens before.
        """
        if self._is_asking or not self._idempotence.needs_id:
            return math.inf
        if now < self._not_before:
            return self._not_before
        node, _ = self._client.least_loaded_node(now)
        if node is None:
            return now + (self._client.soonest(now) or self._retry.first_seconds)
        if not self._client.ready(node):
            return math.inf  # what becomes of the connection, a poll tells
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS
        )
        self._is_asking = True
        self._client.send(node, request, self._answered)
        return math.inf

    def _answered(self, response: ClientResponse) -> None:
        self._is_asking = False
        body: InitProducerIdResponse | None = response.body
        if body is None:
            if isinstance(response.error, UnsupportedVersionError):
                self._idempotence.fail(_no_idempotence(response.error))
            else:
                self._try_later()
                if isinstance(response.error, ResponseTooLargeError):
                    self._on_refused(response.error)
            return
        code = body.error_code
        if code == error_codes.NONE:
            self._failures = 0
            self._idempotence.take_id(body.producer_id, body.producer_epoch)
        elif code in error_codes.RETRIABLE:
            self._try_later()
        elif code in _REFUSED:
            self._try_later()
            self._on_refused(api_error(code, "the id of an idempotent producer"))
        else:
            self._idempotence.fail(api_error(code, "the id of an idempotent producer"))

    def _try_later(self) -> None:
        self._failures += 1
        self._not_before = trio.current_time() + self._retry.seconds(self._failures, self._chance)


def _no_idempotence(error: UnsupportedVersionError) -> TrionetError:
    return UnsupportedVersionError(
        f"the brokers have no idempotent producers: {error}; set enable.idempotence to false"
    )
