from __future__ import annotations

import pytest

from trionet._util._compiling import raise_from
from trionet.errors import DisconnectedError


@pytest.mark.parametrize("cause", [OSError("disk"), None])
def test_cause_is_kept_and_nothing_beside_it(cause: Exception | None) -> None:
    def fail() -> None:
        try:
            int("x")
        except ValueError:
            raise_from(DisconnectedError("no"), cause)

    with pytest.raises(DisconnectedError) as found:
        fail()

    assert cause is found.value.__cause__
    assert found.value.__suppress_context__
