from __future__ import annotations

from trionet.protocol._wire import uuid_text


def test_ids_print_as_kafka_prints_them() -> None:
    assert uuid_text(bytes(16)) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_text(bytes.fromhex("32453c384042413537303532 4e443436")) == "MkU8OEBCQTU3MDUyTkQ0Ng"
    assert uuid_text(b"\xff" * 16) == "_____________________w"
