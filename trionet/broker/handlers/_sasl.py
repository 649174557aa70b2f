"""Rejects SaslHandshake and SaslAuthenticate requests that are not part of an authentication.

During an authentication, the listener handles these requests itself. The handlers in this module
are called if a listener does not use SASL, if a client re-authenticates within a second of its last
re-authentication, or if it sends SaslAuthenticate without a handshake.
"""

from __future__ import annotations

from ...protocol import api_keys, error_codes
from ...protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ...protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import BrokerState


@serves(api_keys.SASL_HANDSHAKE, 0, 1)
async def handle_sasl_handshake(
    broker: BrokerState, request: SaslHandshakeRequest, call: Call
) -> SaslHandshakeResponse:
    """Handle SaslHandshake, versions 0 to 1 (KIP-43)."""
    return SaslHandshakeResponse(error_code=error_codes.ILLEGAL_SASL_STATE)


@serves(api_keys.SASL_AUTHENTICATE, 0, 2)
async def handle_sasl_authenticate(
    broker: BrokerState, request: SaslAuthenticateRequest, call: Call
) -> SaslAuthenticateResponse:
    """Handle SaslAuthenticate, versions 0 to 2 (KIP-152)."""
    return SaslAuthenticateResponse(
        error_code=error_codes.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
