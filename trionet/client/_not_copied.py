"""The base class of clients, which cannot be copied."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex


class NotCopied:
    """An object that holds connections and tasks, which no copy of it would have."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} objects cannot be copied or pickled, since they hold"
            " connections and tasks; open another client instead"
        )
