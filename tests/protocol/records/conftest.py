"""Both ways to read and write records, for the tests that ask for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trionet.protocol.records import (
    _implementation as implementation,
)
from trionet.protocol.records import (
    _pure_reader as pure_reader,
)
from trionet.protocol.records import (
    _pure_writer as pure_writer,
)
from trionet.protocol.records import (
    _typed_reader as typed_reader,
)
from trionet.protocol.records import (
    _typed_writer as typed_writer,
)

#: The second is compiled where the package is.
BOTH = {"pure": (pure_reader, pure_writer), "typed": (typed_reader, typed_writer)}


@pytest.fixture(scope="module", params=BOTH)
def each_implementation(request: pytest.FixtureRequest) -> Iterator[str]:
    """Everything in :mod:`trionet.protocol.records._records` uses one, then the other."""
    with pytest.MonkeyPatch.context() as patch:
        reader, writer = BOTH[request.param]
        patch.setattr(implementation, "reader", reader)
        patch.setattr(implementation, "writer", writer)
        yield request.param
