"""Every generated (message, version) against kio, byte for byte and value for value.

The known differences to kio, and why they do not show here:

* An unknown tag makes kio raise KeyError; KIP-482 says to skip it, and we keep it.
* An error code newer than kio's table makes it raise ValueError; ours passes any int16.
* kio reads a tagged struct that is absent as its defaults; ours is None then, and a struct of
  defaults is left out again when written.
* A zero UUID is None in kio, a time of -1 as well; ours are 16 zero bytes and -1.
* kio reads any bytes after a message's end as belonging to somebody else; ours must be the whole.
"""

from __future__ import annotations

import importlib
import random
import time

import pytest

from protocol.generator.apis import APIS, DATA
from protocol.kio_values import (
    codec_functions,
    entity_class,
    has_version,
    random_entity,
    read_entity,
    to_message,
    write_entity,
)
from protocol.samples import api_of

#: Random messages for each (message, version) in the gate.
ROUNDS = 6


@pytest.mark.parametrize("module_name", [*APIS, *DATA])
def test_every_version_reads_and_writes_what_kio_does(module_name: str) -> None:
    compare(module_name, "gate", ROUNDS)


@pytest.mark.fuzz
@pytest.mark.parametrize("module_name", [*APIS, *DATA])
def test_many_more_messages(module_name: str) -> None:
    seed = str(time.monotonic_ns())
    print(f"seed {seed}")  # shown with the failure
    compare(module_name, seed, 100 * ROUNDS)


def compare(module_name: str, seed: str, rounds: int) -> None:
    api = api_of(module_name)
    module = importlib.import_module(f"trionet.protocol.messages.{module_name}")
    for message in api.messages.values():
        for version, struct in message.versions.items():
            if not has_version(module_name, version):
                continue  # see test_old_versions.py
            decode, encode = codec_functions(module, message, version)
            cls = entity_class(module_name, version, message.side)
            rng = random.Random(f"{seed} {message.name} {version}")
            for _ in range(rounds):
                entity = random_entity(cls, rng)
                wire = write_entity(entity)
                expected = to_message(entity, struct, module)
                chunks: list[bytes] = []
                encode(expected, chunks)

                where = f"{message.name} v{version}"
                assert b"".join(chunks) == wire, where
                assert decode(wire, 0) == expected, where
                assert decode(bytearray(b"head" + wire), 4) == expected, where
                assert read_entity(cls, wire) == entity, where
