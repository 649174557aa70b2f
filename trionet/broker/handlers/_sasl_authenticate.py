"""SaslAuthenticate, versions 0 to 2, outside of an authentication (KIP-152): an error.

As with SaslHandshake, a request that gets here is a mistake of the client.
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
