"""What a key asks of the application, since the user interface itself does no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ._view import Action


@attrs.frozen
class Quit:
    """The user wants to leave."""


@attrs.frozen
class Redraw:
    """The screen is to be drawn anew, whatever it shows."""


@attrs.frozen
class UseMouse:
    """The terminal is to tell clicks, or no longer."""

    on: bool


@attrs.frozen
class Export:
    """What is seen is to be written to a file, whose name says in which form."""

    path: str


@attrs.frozen
class Act:
    """An action is to be carried out."""

    action: Action
    row: Any
    answers: Sequence[str]


Effect = Quit | Redraw | UseMouse | Export | Act
