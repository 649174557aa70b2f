from __future__ import annotations

from trionet.broker.model._topic_store import new_uuid
from trionet.protocol._wire import uuid_text


def test_ids_are_random_and_their_text_is_no_option() -> None:
    ids = {new_uuid() for _ in range(2000)}

    assert len(ids) == 2000
    assert {16} == {len(id) for id in ids}
    assert not any(uuid_text(id).startswith("-") for id in ids)
