"""The versions of what a cluster's brokers agree on (KIP-584)."""

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
from ...requests._version_discovery import SOFTWARE_NAME
from ..calls._argument_checks import mapping
from ..calls._conversions import AdminCalls, check, failure
from ..calls._results import Results


class UpgradeType(IntEnum):
    """What may be done to a feature."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3
    """Also if something is lost with it."""


@attrs.frozen
class FeatureUpdate:
    """A feature's new version.

    Attributes:
        version: the version; 0 for not at all.
        upgrade_type: what may be done for that.
    """

    version: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


@attrs.frozen
class Features:
    """What a cluster has.

    Attributes:
        finalized: the version that holds, by feature.
        finalized_epoch: counts their changes; None where it is not known.
        supported: the lowest and the highest version that the broker has, by feature.
    """

    finalized: dict[str, int]
    finalized_epoch: int | None
    supported: dict[str, tuple[int, int]]


class FeatureCalls(AdminCalls):
    """Calls about features."""

    async def describe_features(self, broker_id: int | None = None) -> Features:
        """Which features the cluster has.

        Args:
            broker_id: what this broker knows; None for any.

        Raises:
            TrionetError: the request failed.
        """
        body = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=__version__
        )
        if broker_id is None:
            return await self._calls.ask_any(body, _features, version_min=3)
        return await self._calls.ask_broker(broker_id, body, _features, version_min=3)

    async def update_features(
        self, features: Mapping[str, FeatureUpdate | int], *, validate_only: bool = False
    ) -> Results[str, None]:
        """Change the versions of features, all or none.

        Args:
            features: by name the version that is to hold.
            validate_only: only look whether that could be done.

        Returns:
            By name, None or why not. Newer brokers tell of the update as a whole only.

        Raises:
            ApiError: the update as a whole is refused.
            TrionetError: the request failed.

        Cancellation: features may be updated.
        """
        features = mapping(features, str, int, FeatureUpdate)

        def updated(answer: UpdateFeaturesResponse) -> Results[str, None]:
            check(answer.error_code, "the features", answer.error_message)
            results: Results[str, None] = Results(dict.fromkeys(features))
            for each in answer.results:
                results[each.feature] = failure(each.error_code, each.feature, each.error_message)
            return results

        body = UpdateFeaturesRequest(
            timeout_ms=self._calls.timeout_ms,
            feature_updates=[_update(name, to) for name, to in features.items()],
            validate_only=validate_only,
        )
        return await self._calls.ask_controller(body, updated, version_min=1)


def _update(name: str, to: FeatureUpdate | int) -> FeatureUpdateKey:
    update = FeatureUpdate(to) if isinstance(to, int) else to
    return FeatureUpdateKey(
        feature=name, max_version_level=update.version, upgrade_type=update.upgrade_type
    )


def _features(answer: ApiVersionsResponse) -> Features:
    check(answer.error_code, "the features")
    return Features(
        {each.name: each.max_version_level for each in answer.finalized_features},
        None if answer.finalized_features_epoch < 0 else answer.finalized_features_epoch,
        {each.name: (each.min_version, each.max_version) for each in answer.supported_features},
    )
