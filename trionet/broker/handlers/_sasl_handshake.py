"""SaslHandshake, versions 0 to 1, outside of an authentication (KIP-43): an error.

A listener with SASL handles it before it gets here. A request that gets here came to a listener
without SASL, or within a second after a re-authentication; both are mistakes of the client.
"""

from __future__ import annotations

from ...protocol import api_keys, error_codes
from ...protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import BrokerState


@serves(api_keys.SASL_HANDSHAKE, 0, 1)
async def handle(
    broker: BrokerState, request: SaslHandshakeRequest, call: Call
) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=error_codes.ILLEGAL_SASL_STATE)
