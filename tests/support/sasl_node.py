"""A scripted node that lets nobody in without a password, by the broker's side of the exchange.

A broker has no SASL in virtual time, because dates and the cost of its cryptography are real.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import trio

from support.sasl import settings
from support.scripted_node import ScriptedNode
from support.secured_clients import PASSWORD, USER
from trionet.broker.security._sasl_exchange import SaslExchange
from trionet.net._authenticator import Gate, Progress
from trionet.net._principal import USER as USER_TYPE
from trionet.net._principal import Principal
from trionet.net.sasl._mechanism import SaslServer
from trionet.net.sasl._plain import PlainServer, verify_with
from trionet.protocol.messages.describe_cluster import DescribeClusterResponse
from trionet.testing import MemoryNetwork, MemoryStream


class SaslNode(ScriptedNode):
    """One node.

    Args:
        network: where it is.
        session_ms: how long a session lives, in milliseconds; 0 for ever.
        mechanisms: the mechanisms by which it lets clients in; PLAIN by default.

    Attributes:
        renewals: how often a client has authenticated once more.
    """

    def __init__(
        self,
        network: MemoryNetwork,
        session_ms: int = 0,
        mechanisms: Mapping[str, Callable[[], SaslServer]] | None = None,
    ) -> None:
        super().__init__(network)
        self.renewals = 0
        self.replies["DescribeCluster"] = lambda _: DescribeClusterResponse(cluster_id="c")
        self._settings = settings(
            mechanisms=mechanisms or {"PLAIN": lambda: PlainServer(verify_with({USER: PASSWORD}))},
            session_ms={"PLAIN": session_ms},
        )
        self._exchanges: dict[MemoryStream, SaslExchange] = {}

    def _exchange(self, stream: MemoryStream) -> SaslExchange:
        if stream not in self._exchanges:
            self._exchanges[stream] = SaslExchange(
                self._settings,
                lambda _, __: self.api_versions(),
                lambda _, name: Principal(USER_TYPE, name),
            )
        return self._exchanges[stream]

    async def _answer(self, stream: MemoryStream, payload: bytes) -> None:
        exchange, now = self._exchange(stream), trio.current_time()
        gate = exchange.gate(payload, now) if exchange.is_complete else Gate.AUTHENTICATE
        if gate is Gate.PASS:
            await super()._answer(stream, payload)
            return
        if gate is Gate.EXPIRED:
            await stream.aclose()
            return
        step = exchange.receive(payload, now, self._network.now_ms())
        self.renewals += step.progress is Progress.REAUTHENTICATED
        if step.send is not None:
            await stream.send_all(b"".join(cast("list[Any]", step.send._chunks)))
        if step.progress is Progress.FAILED:
            await stream.aclose()
