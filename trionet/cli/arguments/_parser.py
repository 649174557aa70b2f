"""A parser that accepts positional arguments anywhere between options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that also parses ``produce TOPIC -H a=b FILE``.

    At the first option argparse sets the remaining optional positional arguments to their defaults
    and rejects those that come later.
    """

    _is_retrying = False

    def parse_known_args(  # type: ignore[override]  # the overloads add nothing
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse, and if words are left over, once more with options and words intermixed."""
        found, rest = super().parse_known_args(args, namespace)
        is_possible = self._subparsers is None and not self._is_retrying
        if not rest or not is_possible or "--" in (args or ()) or _has_options(rest):
            return found, rest
        self._is_retrying = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_retrying = False


def _has_options(words: Sequence[str]) -> bool:
    """Whether the words contain an option; it is unknown, so argparse should reject it."""
    return any(word.startswith("-") and word != "-" for word in words)
