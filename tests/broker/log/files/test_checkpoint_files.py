"""The small files of a data directory: offsets, extents, identities and topic ids."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.log.files._checkpoint_files import (
    Extent,
    FolderIdentity,
    decode_extents,
    decode_id,
    decode_identity,
    decode_offsets,
    decode_partition_metadata,
    deleted_name,
    encode_clean_shutdown,
    encode_extents,
    encode_id,
    encode_identity,
    encode_offsets,
    encode_partition_metadata,
    extent_line,
    is_deleted_name,
    partition_of,
    random_id,
)
from trionet.errors import ConfigError

TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)
OFFSETS = st.dictionaries(st.tuples(TOPICS, st.integers(0, 9999)), st.integers(0, 2**63 - 1))


def test_checkpoint_is_version_count_and_a_line_each() -> None:
    offsets = {("orders", 0): 42, ("orders", 11): 0}

    assert b"0\n2\norders 0 42\norders 11 0\n" == encode_offsets(offsets)
    assert b"0\n0\n" == encode_offsets({})


@pytest.mark.slow
@given(OFFSETS)
def test_checkpoint_reads_back(offsets: dict[tuple[str, int], int]) -> None:
    assert offsets == decode_offsets(encode_offsets(offsets))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"0",
        b"0\n",
        b"1\n0\n",
        b"0\nmany\n",
        b"0\n2\norders 0 42\n",
        b"0\n0\norders 0 42\n",
        b"0\n1\norders 0\n",
        b"0\n1\norders 0 forty\n",
        b"0\n1\norders -1 5\n",
        b"0\n1\norders 2147483648 5\n",
        b"0\n1\norders 0 9223372036854775808\n",
        b"0\n1\norders 0 -9223372036854775808\n",
        b"\xff\xfe",
    ],
)
def test_damaged_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_offsets(data)


def test_identity_is_kafkas_meta_properties() -> None:
    identity = FolderIdentity(cluster_id="MkU3OEVBNTcwNTJENDM2Qg", node_id=3, directory_id="d" * 22)
    lines = encode_identity(identity).decode().splitlines()

    assert {
        "version=1",
        "cluster.id=MkU3OEVBNTcwNTJENDM2Qg",
        "node.id=3",
        f"directory.id={'d' * 22}",
    } == {line for line in lines if not line.startswith("#")}
    assert identity == decode_identity(encode_identity(identity), "here")


def test_identity_written_by_java_is_read() -> None:
    data = (
        b"#\n#Sat Nov 21 02:15:00 UTC 2026\ncluster.id=abc\ndirectory.id=x-y\nnode.id = 1\n"
        b"version=1\n"
    )

    assert FolderIdentity(cluster_id="abc", node_id=1, directory_id="x-y") == decode_identity(
        data, "here"
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"version=0\nbroker.id=1\ncluster.id=abc\n", "KRaft"),
        (b"", "KRaft"),
        (b"version=1\nnode.id=1\n", "does not contain a valid"),
        (b"version=1\ncluster.id=abc\n", "does not contain a valid"),
        (b"version=1\ncluster.id=abc\nnode.id=one\n", "does not contain a valid"),
    ],
)
def test_identity_that_is_not_ours_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        decode_identity(data, "the folder")


def test_partition_metadata_is_kafkas() -> None:
    topic_id = bytes(range(16))

    assert b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw" == encode_partition_metadata(topic_id)
    assert topic_id == decode_partition_metadata(encode_partition_metadata(topic_id))


@pytest.mark.parametrize(
    "data", [b"", b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", b"version: 0\ntopic_id: AAEC"]
)
def test_damaged_partition_metadata_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_partition_metadata(data)


@given(st.binary(min_size=16, max_size=16))
def test_ids_are_22_characters_and_read_back(raw: bytes) -> None:
    assert 22 == len(encode_id(raw))
    assert raw == decode_id(encode_id(raw))


def test_random_ids_differ_and_never_look_like_an_option() -> None:
    ids = {random_id() for _ in range(200)}

    assert 200 == len(ids)
    assert not any(each.startswith("-") for each in ids)


def test_clean_stop_is_what_kafka_parses() -> None:
    assert {"version": "0", "broker_epoch": "-1"} == json.loads(encode_clean_shutdown())


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("orders-0", ("orders", 0)),
        ("a-b-12", ("a-b", 12)),
        ("a.b_c--3", ("a.b_c-", 3)),
        ("orders", None),
        ("orders-", None),
        ("orders-x", None),
        ("__cluster_metadata-0", None),
        ("lost+found", None),
    ],
)
def test_partition_folders_are_topic_and_number(
    folder: str, expected: tuple[str, int] | None
) -> None:
    assert expected == partition_of(folder)


@given(st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True), st.integers(0, 99999))
def test_deleted_folder_has_a_name_of_its_own(topic: str, partition: int) -> None:
    names = {deleted_name(topic, partition) for _ in range(3)}

    assert 3 == len(names)
    for name in names:
        assert len(name) <= 255
        assert is_deleted_name(name)
        assert partition_of(name) is None
    assert not is_deleted_name(f"{topic}-{partition}")


NUMBERS = st.integers(0, 2**63 - 1)
EXTENTS = st.dictionaries(
    st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 9999)),
    st.builds(
        Extent,
        st.binary(min_size=16, max_size=16),
        NUMBERS,
        NUMBERS,
        NUMBERS,
        NUMBERS,
        NUMBERS,
        NUMBERS,
        st.just(0) | NUMBERS,
        st.just(0) | NUMBERS,
    ),
)


def encoded(extents: dict[tuple[str, int], Extent]) -> bytes:
    return encode_extents(extent_line(key, extent) for key, extent in extents.items())


def test_the_file_is_a_line_for_each_partition_and_a_checksum() -> None:
    data = encoded({("orders", 3): Extent(bytes(15) + b"\1", 5, 42, 40, 100, 2000, 7)})

    *lines, seal = data.decode().splitlines()
    assert ["0", "1", f"orders 3 {'0' * 31}1 5 42 40 100 2000 7"] == lines
    assert seal.startswith("crc32c ")


def test_a_line_ends_with_the_aborted_transactions_if_there_are_any() -> None:
    """Without them it is as releases wrote it that knew no transactions."""
    extent = Extent(bytes(16), 5, 42, 40, 100, 2000, 7, 9)
    _, _, line, _ = encoded({("orders", 3): extent}).decode().splitlines()

    assert line.endswith(" 5 42 40 100 2000 7 9")


def test_a_line_ends_with_where_cleaning_ended_if_there_was_any() -> None:
    """Without it, a line is as releases wrote it that did not compact."""
    extent = Extent(bytes(16), 5, 42, 40, 100, 2000, 7, 0, 30)
    _, _, line, _ = encoded({("orders", 3): extent}).decode().splitlines()

    assert line.endswith(" 5 42 40 100 2000 7 0 30")
    assert {("orders", 3): extent} == decode_extents(encoded({("orders", 3): extent}))


@pytest.mark.slow
@given(EXTENTS)
def test_the_file_reads_back(extents: dict[tuple[str, int], Extent]) -> None:
    assert extents == decode_extents(encoded(extents))


@pytest.mark.slow
@given(st.data())
def test_a_byte_that_has_changed_is_found(data: st.DataObject) -> None:
    extents = data.draw(EXTENTS.filter(bool))
    content = bytearray(encoded(extents))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))

    with pytest.raises(ValueError, match="byte"):
        decode_extents(bytes(content))


@pytest.mark.slow
@given(st.data())
def test_a_file_that_is_cut_is_found(data: st.DataObject) -> None:
    content = encoded(data.draw(EXTENTS))

    with pytest.raises(ValueError, match="byte"):
        decode_extents(content[: data.draw(st.integers(0, len(content) - 1))])


def test_no_partitions_are_no_lines() -> None:
    assert {} == decode_extents(encode_extents([]))
