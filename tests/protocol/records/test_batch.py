"""Batch headers and their checksums, and which code reads and writes records."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

import trionet
from trionet.errors import WireFormatError
from trionet.protocol.records import _crc32c as module
from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records._batch import (
    HEADER_SIZE,
    BatchHeader,
    check_crc,
    iter_batches,
    read_header,
)
from trionet.protocol.records._crc32c import crc32c
from trionet.protocol.records._records import encode_batch

HEADER = BatchHeader(
    base_offset=1000,
    length=49 + 7,
    leader_epoch=3,
    magic=2,
    crc=0xDEADBEEF,
    attributes=0,
    last_offset_delta=9,
    base_timestamp=1_700_000_000_000,
    max_timestamp=1_700_000_000_500,
    producer_id=4000,
    producer_epoch=5,
    base_sequence=77,
    count=10,
)

FIRST = encode_batch([(1, b"k", b"first", ())])
SECOND = encode_batch([(2, None, b"second", ()), (3, None, b"third", ())], base_offset=1)


def test_header_is_61_bytes_in_kafkas_order() -> None:
    expected = (
        "00000000000003e8 00000038 00000003 02 deadbeef 0000 00000009 "
        "0000018bcfe56800 0000018bcfe569f4 0000000000000fa0 0005 0000004d 0000000a"
    )

    assert HEADER.pack() == bytes.fromhex(expected)
    assert len(HEADER.pack()) == HEADER_SIZE


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_header_is_read_from_any_buffer_at_any_position(kind: type) -> None:
    assert read_header(kind(b"ab" + HEADER.pack()), 2) == HEADER


def test_size_and_last_offset() -> None:
    assert (HEADER.size, HEADER.last_offset) == (HEADER_SIZE + 7, 1009)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (0, (0, 0, False, False)),
        (4, (4, 0, False, False)),
        (0x08, (0, 1, False, False)),
        (0x10, (0, 0, True, False)),
        (0x20, (0, 0, False, True)),
        (0x40 | 0x30 | 0x08 | 3, (3, 1, True, True)),
    ],
)
def test_attributes(attributes: int, expected: tuple[int, int, bool, bool]) -> None:
    header = HEADER._replace(attributes=attributes)

    found = (header.codec, header.timestamp_type, header.is_transactional, header.is_control)
    assert found == expected


def test_short_header_is_refused() -> None:
    for end in range(HEADER_SIZE):
        with pytest.raises(WireFormatError, match="truncated") as raised:
            read_header(HEADER.pack()[:end])
        assert isinstance(raised.value.__cause__, struct.error)


@pytest.mark.parametrize("length", [48, 0, -1, -(2**31)])
def test_impossible_length_is_refused(length: int) -> None:
    with pytest.raises(WireFormatError, match="length"):
        read_header(HEADER._replace(length=length).pack())


def test_older_magic_is_returned_for_the_caller_to_refuse() -> None:
    assert read_header(HEADER._replace(magic=1, length=20).pack()).magic == 1


def test_negative_length_of_an_older_magic_is_refused() -> None:
    with pytest.raises(WireFormatError, match="negative length"):
        read_header(HEADER._replace(magic=1, length=-1).pack())


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_iterates_over_whole_batches(kind: type) -> None:
    found = list(iter_batches(kind(FIRST + SECOND)))

    assert found == [(0, read_header(FIRST)), (len(FIRST), read_header(SECOND))]


def test_iteration_stops_in_silence_at_a_cut_batch() -> None:
    whole = FIRST + SECOND
    for end in range(len(whole)):
        found = [position for position, _ in iter_batches(whole[:end])]

        assert found == ([0] if end >= len(FIRST) else [])


def test_iteration_refuses_a_length_that_would_not_advance() -> None:
    stuck = FIRST[:8] + struct.pack(">i", -12) + FIRST[12:]

    with pytest.raises(WireFormatError, match="length -12"):
        list(iter_batches(stuck))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_checksum_covers_everything_from_the_attributes_on(kind: type) -> None:
    header = read_header(SECOND)

    assert check_crc(kind(FIRST + SECOND), len(FIRST), header)
    for index in range(21, len(SECOND)):
        broken = bytearray(SECOND)
        broken[index] ^= 1

        assert not check_crc(kind(bytes(broken)), 0, header)


def test_broker_may_set_base_offset_and_leader_epoch_without_a_new_checksum() -> None:
    placed = struct.pack(">qii", 500, read_header(SECOND).length, 9) + SECOND[16:]
    header = read_header(placed)

    assert (header.base_offset, header.leader_epoch, header.last_offset) == (500, 9, 501)
    assert check_crc(placed, 0, header)


def test_cut_batch_has_no_valid_checksum() -> None:
    assert not check_crc(SECOND[:-1], 0, read_header(SECOND))


#: The check value that every catalogue of checksums gives for Castagnoli's polynomial.
CHECK_VALUE = 0xE3069283

SOURCES = (module.from_fastcrc, module.from_crc32c, module.from_table)


def load(source: module.Source) -> module.Checksum:
    if source is module.from_table:
        with pytest.warns(RuntimeWarning, match="pip install fastcrc"):
            return source()
    try:
        return source()
    except ImportError as error:
        pytest.skip(f"{error.name} is not installed")


def missing() -> module.Checksum:
    raise ImportError("not here")


def test_check_value() -> None:
    assert crc32c(b"123456789") == CHECK_VALUE


def test_goes_on_from_an_earlier_value() -> None:
    assert crc32c(b"6789", crc32c(b"12345")) == CHECK_VALUE


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_takes_any_buffer(kind: type) -> None:
    assert crc32c(kind(b"123456789")) == CHECK_VALUE


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_computes_the_same(source: module.Source) -> None:
    checksum = load(source)
    data = random.Random(1).randbytes(1000)

    assert checksum(b"123456789", 0) == CHECK_VALUE
    assert checksum(memoryview(data)[400:], checksum(data[:400], 0)) == crc32c(data)


def test_google_takes_nothing_but_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def extend(value: int, data: object) -> int:
        assert type(data) is bytes
        return crc32c(data, value)

    monkeypatch.setitem(
        sys.modules, "google_crc32c", cast(ModuleType, SimpleNamespace(extend=extend))
    )
    checksum = module.from_google()

    assert checksum(memoryview(b"6789"), checksum(bytearray(b"12345"), 0)) == CHECK_VALUE


def test_the_first_importable_source_is_taken() -> None:
    assert module.first_available((missing, lambda: crc32c, missing)) is crc32c


def test_the_table_warns_and_is_the_last_resort() -> None:
    with pytest.warns(RuntimeWarning, match="are computed in Python"):
        checksum = module.first_available((missing, missing, module.from_table))

    assert checksum(b"123456789", 0) == CHECK_VALUE


PROGRAM = """
from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records import decode_batch, encode_batch
print(implementation.reader.__name__.split('.')[-1], implementation.writer.__name__.split('.')[-1])
assert decode_batch(encode_batch([(1, None, b"v", ())])) == [(0, 1, None, b"v", ())]
"""


def run(program: str, **variables: str) -> tuple[str, str]:
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def test_the_compiled_package_takes_the_typed_modules() -> None:
    kind = "typed" if trionet.is_compiled() else "pure"

    assert f"trionet.protocol.records._{kind}_reader" == implementation.reader.__name__
    assert f"trionet.protocol.records._{kind}_writer" == implementation.writer.__name__


def test_pure_python_can_be_had() -> None:
    assert ("_pure_reader _pure_writer\n", "") == run(PROGRAM, TRIONET_PURE="1")


@pytest.mark.compiled
def test_without_librt_records_are_written_in_python_and_one_line_says_so() -> None:
    missing = "import sys; sys.modules['librt.strings'] = None\n"

    stdout, stderr = run(missing + PROGRAM)

    assert "_typed_reader _pure_writer\n" == stdout
    assert 1 == stderr.count("\n")
    assert "records are written in pure Python, because librt cannot be used" in stderr
