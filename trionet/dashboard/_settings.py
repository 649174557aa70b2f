"""What the dashboard is started with."""

from __future__ import annotations

from typing import Final

import attrs

#: How often a source may look, in seconds; ``+`` and ``-`` go through these.
REFRESH_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


@attrs.frozen
class DashboardSettings:
    """How the dashboard looks and what it shows first.

    Attributes:
        view: the name of the view that is shown first.
        refresh_seconds: how often the source looks at first.
        color: whether there are colours; None asks NO_COLOR.
        ascii: whether nothing but ASCII is shown; None asks the locale.
        mouse: whether the terminal tells clicks from the start.
    """

    view: str = "overview"
    refresh_seconds: float = 1.0
    color: bool | None = None
    ascii: bool | None = None
    mouse: bool = False
