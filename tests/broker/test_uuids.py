from __future__ import annotations

from trionet.broker.uuids import new_uuid, uuid_text


def test_ids_are_random_and_their_text_is_no_option() -> None:
    ids = {new_uuid() for _ in range(2000)}

    assert len(ids) == 2000
    assert {16} == {len(id) for id in ids}
    assert not any(uuid_text(id).startswith("-") for id in ids)


def test_ids_print_as_kafka_prints_them() -> None:
    assert uuid_text(bytes(16)) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_text(bytes.fromhex("32453c384042413537303532 4e443436")) == "MkU8OEBCQTU3MDUyTkQ0Ng"
    assert uuid_text(b"\xff" * 16) == "_____________________w"
