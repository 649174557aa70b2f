"""Effects that the user interface, which does no I/O, requests from the application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ._view import Action


@attrs.frozen
class Quit:
    """A request to quit the dashboard."""


@attrs.frozen
class Redraw:
    """A request to redraw the whole screen."""


@attrs.frozen
class UseMouse:
    """A request to turn the terminal's mouse reports on or off."""

    on: bool


@attrs.frozen
class Export:
    """A request to export the current view to a file, whose extension selects the format."""

    path: str


@attrs.frozen
class Act:
    """A request to run an action."""

    action: Action
    row: Any
    answers: Sequence[str]


Effect = Quit | Redraw | UseMouse | Export | Act
