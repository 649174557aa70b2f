"""Requests of the user interface, which does no I/O itself, to the application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ._view import Action


@attrs.frozen
class Quit:
    """Quit the dashboard."""


@attrs.frozen
class Redraw:
    """Redraw the whole screen."""


@attrs.frozen
class UseMouse:
    """Turn the terminal's mouse reports on or off."""

    on: bool


@attrs.frozen
class Export:
    """Write the current view to a file; the extension chooses the format."""

    path: str


@attrs.frozen
class Act:
    """Run an action."""

    action: Action
    row: Any
    answers: Sequence[str]


Effect = Quit | Redraw | UseMouse | Export | Act
