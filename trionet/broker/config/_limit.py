"""Settings that limit how many of something clients may create."""

from __future__ import annotations

import logging
from typing import Final

from ..._util._logging import get_logger
from ...errors import ApiError
from ...protocol._config_types import INT_MAX
from ...protocol.error_codes import POLICY_VIOLATION

logger = get_logger("trionet.broker")

UNLIMITED: Final = INT_MAX


class Limit:
    """The most there may be of something that lasts, such as groups.

    Args:
        key: the key of the setting.
        maximum: its value.
    """

    def __init__(self, key: str, maximum: int) -> None:
        self._key = key
        self._maximum = maximum
        self._is_reported = False

    def error(self, count: int, new: str) -> ApiError | None:
        """Return the error for a client that would create one more; None if it may.

        The first rejection is logged as a warning, and further ones only once there was room again,
        since a client can cause any number.

        Args:
            count: how many there are.
            new: what the client would create, such as ``group 'a'``.
        """
        if count < self._maximum:
            self._is_reported = False
            return None
        level = logging.DEBUG if self._is_reported else logging.WARNING
        self._is_reported = True
        text = f"rejecting new {new}: {self._key}={self._maximum} is reached"
        logger.log(level, "%s", text)
        return ApiError(POLICY_VIOLATION, text)
