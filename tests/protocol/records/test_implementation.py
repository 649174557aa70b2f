"""Which code reads and writes records, and what is said when the fast one cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import trionet
from trionet.protocol.records import _implementation as implementation

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
