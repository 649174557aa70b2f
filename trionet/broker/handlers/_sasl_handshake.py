"""SaslHandshake, versions 0 to 1, where it is no part of an authentication (KIP-43).

A listener with SASL takes it before it gets here. What comes this far is on a listener without
SASL, or follows the last re-authentication within a second: both are the client's mistake.
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
