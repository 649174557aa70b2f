"""SaslHandshake and SaslAuthenticate outside of an authentication: an error.

A listener with SASL handles them before they get here. A request that gets here came to a listener
without SASL, or within a second after a re-authentication; both are errors of the client.
"""

from __future__ import annotations

from ...protocol import api_keys, error_codes
from ...protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ...protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import BrokerState


@serves(api_keys.SASL_HANDSHAKE, 0, 1)
async def sasl_handshake(
    broker: BrokerState, request: SaslHandshakeRequest, call: Call
) -> SaslHandshakeResponse:
    """SaslHandshake, versions 0 to 1 (KIP-43)."""
    return SaslHandshakeResponse(error_code=error_codes.ILLEGAL_SASL_STATE)


@serves(api_keys.SASL_AUTHENTICATE, 0, 2)
async def sasl_authenticate(
    broker: BrokerState, request: SaslAuthenticateRequest, call: Call
) -> SaslAuthenticateResponse:
    """SaslAuthenticate, versions 0 to 2 (KIP-152)."""
    return SaslAuthenticateResponse(
        error_code=error_codes.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
