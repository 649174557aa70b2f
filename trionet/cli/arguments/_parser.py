"""A parser that takes words anywhere between options, as people type them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


class Parser(argparse.ArgumentParser):
    """As argparse's, for ``produce TOPIC -H a=b FILE``, too.

    By itself argparse gives a word that may be left out its nothing at the first option, and does
    not know what to do with one that comes later.
    """

    _is_trying_again = False

    def parse_known_args(  # type: ignore[override]  # its overloads say nothing more
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse; where words are left over, once more with the words after the options."""
        found, rest = super().parse_known_args(args, namespace)
        is_possible = self._subparsers is None and not self._is_trying_again
        if not rest or not is_possible or "--" in (args or ()) or _has_options(rest):
            return found, rest
        self._is_trying_again = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_trying_again = False


def _has_options(words: Sequence[str]) -> bool:
    """Whether there is an unknown option among them, about which an error is right."""
    return any(word.startswith("-") and word != "-" for word in words)
