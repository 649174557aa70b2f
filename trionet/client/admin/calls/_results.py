"""The results of a call about several items."""

from __future__ import annotations

from typing import TypeVar

from ....errors import TrionetError

K = TypeVar("K")
V = TypeVar("V")


class Results(dict[K, V | TrionetError]):
    """The value or error of each item of a call, by item.

    Errors of single items are not raised.
    """

    @property
    def errors(self) -> dict[K, TrionetError]:
        """The errors of the items that failed."""
        return {key: value for key, value in self.items() if isinstance(value, TrionetError)}

    def checked(self) -> dict[K, V]:
        """Return the values of all items.

        Raises:
            TrionetError: the error of the first item that failed.
        """
        for error in self.errors.values():
            raise error
        return {key: value for key, value in self.items() if not isinstance(value, TrionetError)}
