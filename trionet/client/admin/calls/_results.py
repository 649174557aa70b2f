"""What became of each item of a call."""

from __future__ import annotations

from typing import TypeVar

from ....errors import TrionetError

K = TypeVar("K")
V = TypeVar("V")


class Results(dict[K, V | TrionetError]):
    """What became of each item: by its name, its value or its error.

    An error of one item says nothing of the others, and is not raised.
    """

    @property
    def errors(self) -> dict[K, TrionetError]:
        """The items that failed."""
        return {key: value for key, value in self.items() if isinstance(value, TrionetError)}

    def checked(self) -> dict[K, V]:
        """The values alone.

        Raises:
            TrionetError: the error of the first item that failed.
        """
        for error in self.errors.values():
            raise error
        return {key: value for key, value in self.items() if not isinstance(value, TrionetError)}
