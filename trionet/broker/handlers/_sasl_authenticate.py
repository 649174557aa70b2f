"""SaslAuthenticate, versions 0 to 2, where it is no part of an authentication (KIP-152).

As with SaslHandshake, what comes this far is the client's mistake.
"""

from __future__ import annotations

from ...protocol import api_keys, error_codes
from ...protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import BrokerState


@serves(api_keys.SASL_AUTHENTICATE, 0, 2)
async def handle(
    broker: BrokerState, request: SaslAuthenticateRequest, call: Call
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=error_codes.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
