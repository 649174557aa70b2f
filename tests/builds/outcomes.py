"""Calls, and what each returned or raised: one line of text, the same in every run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

#: Longer texts are told by their beginning and a hash.
TEXT_MAX = 400


class Calls:
    """Outcomes by the name of the call.

    Args:
        tells_types: whether to note the texts of TypeErrors. In compiled functions mypyc checks the
            arguments, in words of its own.
    """

    def __init__(self, *, tells_types: bool) -> None:
        self.outcomes: dict[str, str] = {}
        self._tells_types = tells_types

    def add(self, name: str, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function, and note what it returns or raises."""
        try:
            result = function(*arguments)
        except Exception as error:  # boundary: any error is an outcome
            self.note(name, error)
        else:
            self.note(name, result)

    def note(self, name: str, result: object) -> None:
        """Note a result, or an exception."""
        assert name not in self.outcomes, name
        if not isinstance(result, Exception):
            text = repr(result)
        elif isinstance(result, TypeError) and not self._tells_types:
            text = type(result).__name__
        else:
            text = f"{type(result).__name__}: {result}"
        text = re.sub(r"\b0x[0-9a-f]{6,}\b", "0x…", text)
        # mypyc's code does not count what it cannot unpack.
        text = re.sub(r"(values to unpack) \(expected .*\)", r"\1", text)
        if len(text) > TEXT_MAX:
            digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
            text = f"{text[:TEXT_MAX]}… {digest}"
        self.outcomes[name] = text
