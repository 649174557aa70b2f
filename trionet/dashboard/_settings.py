"""The settings of a run of the dashboard."""

from __future__ import annotations

from typing import Final

import attrs

#: The refresh intervals in seconds that ``+`` and ``-`` step through; also the allowed range.
REFRESH_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


@attrs.frozen
class DashboardSettings:
    """How the dashboard looks, and what it shows first.

    Attributes:
        view: the name of the first view.
        refresh_seconds: the initial refresh interval.
        color: whether to use colours; None depends on NO_COLOR.
        ascii: whether to show only ASCII; None depends on the locale.
        mouse: whether mouse reports are on at first.
    """

    view: str = "overview"
    refresh_seconds: float = 1.0
    color: bool | None = None
    ascii: bool | None = None
    mouse: bool = False
