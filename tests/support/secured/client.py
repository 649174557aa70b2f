"""What the tests of secured listeners ask of a foreign client."""

from __future__ import annotations

import abc
import contextlib
import gc
import re
import warnings
from collections.abc import Generator, Iterator, Mapping
from typing import ClassVar

from support.secured.access import Access, Failure, Refusal

PATIENCE_SECONDS = 10
# A client knows why it is kept out no later than this after it began to connect.
REFUSAL_SECONDS_MAX = 1.0

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

    def refusal(self, failure: Failure, access: Access) -> Refusal:
        """Try to get in; the first error that says why that fails, as :attr:`errors` has it.

        Others may come before it, which say only that an attempt has failed. AssertionError with
        all that came if none says why.
        """
        kind, said = self.errors[failure]
        told = []
        with contextlib.closing(self.refusals(access)) as refusals:
            for refusal in refusals:
                told.append(refusal)
                if re.fullmatch(kind, refusal.kind) and re.search(said, refusal.text):
                    return refusal
        raise AssertionError(f"{failure}: {self.name} was told only {told}")

    @abc.abstractmethod
    def refusals(self, access: Access) -> Generator[Refusal]:
        """Try to get in, and what it tells its caller or its log of that, while it goes on.

        Each with the seconds since before the first attempt; what has to be loaded once is loaded.
        RuntimeError if it gets in.
        """

    def close(self) -> None:  # noqa: B027 - most keep nothing
        """End what is kept between calls."""


@contextlib.contextmanager
def without_leftovers() -> Iterator[None]:
    """Collect the sockets that clients leave open, as when refused; each would be a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            yield
        finally:
            gc.collect()
