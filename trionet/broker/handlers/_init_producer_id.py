"""InitProducerId, versions 0 to 5: an id for an idempotent producer (KIP-98).

Ids are unique, also across restarts. Gap: no transactions; a transactional id is rejected.
"""

from __future__ import annotations

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import BrokerState


@serves(api_keys.INIT_PRODUCER_ID, 0, 5)
async def handle(
    broker: BrokerState, request: InitProducerIdRequest, call: Call
) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        return InitProducerIdResponse(error_code=error_codes.INVALID_REQUEST, producer_epoch=-1)
    try:
        return InitProducerIdResponse(producer_id=await broker.cluster.next_producer_id())
    except ApiError as error:
        return InitProducerIdResponse(error_code=error.error_code, producer_epoch=-1)
