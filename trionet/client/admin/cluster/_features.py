"""Finalized and supported features of a cluster (KIP-584)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import attrs

from .... import __version__
from ....protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ....protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ..._argument_checks import mapping
from ...network._api_versions import SOFTWARE_NAME
from ..calls._calls import AdminCalls, Results
from ..calls._conversions import check, failure


class UpgradeType(IntEnum):
    """The kind of change that an update may make to a feature's version."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3
    """Allow a downgrade even if it loses metadata."""


@attrs.frozen
class FeatureUpdate:
    """A change of a feature's version.

    Attributes:
        version: the new version level; 0 to disable the feature.
        upgrade_type: the kind of change that the update may make.
    """

    version: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


@attrs.frozen
class Features:
    """The features of a cluster.

    Attributes:
        finalized: the finalized version level of each feature.
        finalized_epoch: the epoch of the finalized features; None if unknown.
        supported: the minimum and maximum version level of each feature on the broker.
    """

    finalized: dict[str, int]
    finalized_epoch: int | None
    supported: dict[str, tuple[int, int]]


class FeatureCalls(AdminCalls):
    """Admin calls for features."""

    async def describe(self, broker_id: int | None = None) -> Features:
        """Return the cluster's features.

        Args:
            broker_id: the broker to send the request to; None for any.

        Raises:
            TrionetError: the request failed.
        """
        body = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=__version__
        )
        if broker_id is None:
            return await self._calls.call_any(body, _features, version_min=3)
        return await self._calls.call_broker(broker_id, body, _features, version_min=3)

    async def update(
        self, features: Mapping[str, FeatureUpdate | int], *, validate_only: bool = False
    ) -> Results[str, None]:
        """Change the finalized versions of features, either all of them or none.

        Args:
            features: the new version level of each feature.
            validate_only: whether to validate the update without making it.

        Returns:
            For each feature, None on success or the error. Newer brokers report an error only for
            the update as a whole.

        Raises:
            ApiError: the whole update was rejected.
            TrionetError: the request failed.

        Cancellation: features may have been updated.
        """
        features = mapping(features, str, int, FeatureUpdate)

        def updated(response: UpdateFeaturesResponse) -> Results[str, None]:
            check(response.error_code, "the features", response.error_message)
            results: Results[str, None] = Results(dict.fromkeys(features))
            for each in response.results:
                results[each.feature] = failure(each.error_code, each.feature, each.error_message)
            return results

        body = UpdateFeaturesRequest(
            timeout_ms=self._calls.timeout_ms,
            feature_updates=[_update(name, to) for name, to in features.items()],
            validate_only=validate_only,
        )
        return await self._calls.call_controller(body, updated, version_min=1)


def _update(name: str, to: FeatureUpdate | int) -> FeatureUpdateKey:
    update = FeatureUpdate(to) if isinstance(to, int) else to
    return FeatureUpdateKey(
        feature=name, max_version_level=update.version, upgrade_type=update.upgrade_type
    )


def _features(response: ApiVersionsResponse) -> Features:
    check(response.error_code, "the features")
    return Features(
        {each.name: each.max_version_level for each in response.finalized_features},
        None if response.finalized_features_epoch < 0 else response.finalized_features_epoch,
        {each.name: (each.min_version, each.max_version) for each in response.supported_features},
    )
