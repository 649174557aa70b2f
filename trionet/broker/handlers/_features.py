"""Implements UpdateFeatures, which changes the cluster's feature levels (KIP-584, KIP-1022)."""

from __future__ import annotations

from typing import Final

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import BrokerState
from ..model._features import LEVEL_MAX, TRANSACTION_VERSION
from ..storage._storage_errors import storage_errors

# From this version on, the request says what kind of change is allowed.
UPGRADE_TYPE_SINCE: Final = 1
# From this version on, there is one result for all updates, which succeed or fail together.
ONE_RESULT_SINCE: Final = 2

UPGRADE: Final = 1
_DOWNGRADES: Final = (2, 3)  # safe and unsafe


@serves(api_keys.UPDATE_FEATURES, 0, 2)
async def handle_update_features(
    broker: BrokerState, request: UpdateFeaturesRequest, call: Call
) -> UpdateFeaturesResponse:
    """Handle UpdateFeatures, versions 0 to 2, for the feature ``transaction.version``.

    All updates of a request are applied, or none.
    """
    features = broker.cluster.features
    level = features.level
    try:
        for update in request.feature_updates:
            level = _checked(update, level, call.version)
        if level != features.level and not request.validate_only:
            with storage_errors():
                await features.change(level)
    except ApiError as error:
        return UpdateFeaturesResponse(error_code=error.error_code, error_message=error.message)
    response = UpdateFeaturesResponse()
    if call.version < ONE_RESULT_SINCE:
        response.results = [
            UpdatableFeatureResult(feature=each.feature) for each in request.feature_updates
        ]
    return response


def _checked(update: FeatureUpdateKey, level: int, version: int) -> int:
    """Return the level after an update.

    Raises:
        ApiError: INVALID_UPDATE_VERSION.
    """
    new = update.max_version_level
    # As in Kafka 4.3, version 0 cannot lower a level, although it has a field for that.
    kind = update.upgrade_type if version >= UPGRADE_TYPE_SINCE else UPGRADE
    allows_downgrade = kind in _DOWNGRADES
    if kind != UPGRADE and not allows_downgrade:
        raise _invalid(f"unknown upgrade type {kind}; allowed: 1, 2, 3")
    if update.feature != TRANSACTION_VERSION:
        raise _invalid(f"unknown feature {update.feature!r}; supported: {TRANSACTION_VERSION}")
    if not 0 <= new <= LEVEL_MAX:
        raise _invalid(f"{TRANSACTION_VERSION} = {new}; supported levels: 0 to {LEVEL_MAX}")
    if new < level and not allows_downgrade:
        raise _invalid(
            f"{TRANSACTION_VERSION} = {new} is lower than the current level {level}, and the"
            " request does not allow a downgrade"
        )
    if new > level and allows_downgrade:
        raise _invalid(
            f"{TRANSACTION_VERSION} = {new} is higher than the current level {level}, but the"
            " request demands a downgrade"
        )
    return new


def _invalid(message: str) -> ApiError:
    return ApiError(error_codes.INVALID_UPDATE_VERSION, message)
