"""A screen full of text."""

from __future__ import annotations

import attrs

from ..ui._view import Line


@attrs.frozen
class Frame:
    """The lines of a whole screen.

    Attributes:
        width: of every line, in cells.
        lines: from the top to the bottom.
    """

    width: int
    lines: list[Line]
