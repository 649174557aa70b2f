from __future__ import annotations

import pytest

from trionet.client._api_errors import api_error
from trionet.client.admin import Results
from trionet.errors import ApiError
from trionet.protocol import error_codes

ERROR = api_error(error_codes.TOPIC_ALREADY_EXISTS, "topic b")


def test_values_and_errors_are_distinguished() -> None:
    results: Results[str, int] = Results(a=1, b=ERROR)

    assert {"b": ERROR} == results.errors
    with pytest.raises(ApiError) as raised:
        results.checked()
    assert ERROR is raised.value


def test_without_errors_the_values_are_all() -> None:
    results: Results[str, int | None] = Results(a=1, b=None)

    assert {"a": 1, "b": None} == results.checked()
