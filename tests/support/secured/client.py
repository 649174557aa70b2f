"""What the tests of secured listeners ask of a foreign client."""

from __future__ import annotations

import abc
import gc
import warnings
from collections.abc import Mapping
from typing import ClassVar

from support.secured.access import Access, Failure, Refusal

PATIENCE_SECONDS = 10

Errors = Mapping[Failure, tuple[str, str]]
"""What a client calls an error, and what it says."""


class SecuredClient(abc.ABC):
    """A foreign client that gets in, or is kept out.

    Attributes:
        name: of the client.
        errors: how it tells each failure, as expressions; those that it cannot have are missing.
    """

    name: ClassVar[str]
    errors: ClassVar[Errors]

    @abc.abstractmethod
    def exchange(self, access: Access, topic: str, value: bytes) -> bytes:
        """Write a record into a new topic; the value that it then reads there."""

    @abc.abstractmethod
    def refusal(self, access: Access) -> Refusal:
        """Try to get in; how that ends. RuntimeError if it gets in."""

    def close(self) -> None:  # noqa: B027 - most keep nothing
        """End what is kept between calls."""


def collect_leftovers() -> None:
    """Collect the sockets that a client leaves open when it is refused; each would be a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
