"""CRC-32C, whichever package computes it."""

from __future__ import annotations

import random
import sys
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from trionet.protocol.records import _crc32c as module
from trionet.protocol.records._crc32c import crc32c

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
