"""Which protocol of transactions a cluster speaks, by its level of ``transaction.version``."""

from __future__ import annotations

from typing import Final

import trio

from trionet import Admin
from trionet.client.admin import FeatureUpdate, UpgradeType

FEATURE: Final = "transaction.version"
SECONDS: Final = 30


async def finalize(admin: Admin, level: int) -> None:
    """Let the cluster speak TV1 or TV2."""
    now = (await admin.describe_features()).finalized.get(FEATURE, 0)
    if now != level:
        kind = UpgradeType.UPGRADE if level > now else UpgradeType.SAFE_DOWNGRADE
        (await admin.update_features({FEATURE: FeatureUpdate(level, kind)})).checked()
        with trio.fail_after(SECONDS):
            while (await admin.describe_features()).finalized.get(FEATURE, 0) != level:
                await trio.lowlevel.checkpoint()
