"""The broker is killed under load: what it has acknowledged is there when it runs again."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from typing import NamedTuple

import pytest
import trio

from support.acknowledged import PARTITIONS, TOPIC, Ledger, Producer, load, make_topic, read_all
from support.calls import batch
from support.trionet_process import trionet_broker_process
from trionet.protocol.records._batch import iter_batches

KILLS = 2
SEEDS = 50

POLICIES: list[dict[str, str]] = [
    {},
    {"log.flush.interval.messages": "1"},
    {"log.flush.interval.messages": "100"},
    {"log.flush.interval.ms": "50"},
]
SEGMENT_BYTES = (120_000, 500_000, 2**30)

CUT = re.compile(
    r"(WARNING|ERROR) (\S+): truncated at offset (\d+), byte (\d+) of (\d{20}\.log): (.+);"
    r" dropped (\d+) bytes and (\d+) newer segments"
)


class Tear(NamedTuple):
    """What was done by hand to the newest file of a partition, and what its loss must look like."""

    partition: str
    offset: int
    position: int
    file: str
    lost: int


def live(seed: int, folder: Path) -> None:
    """Several lives of a broker that are ended by SIGKILL, and the look at what is left."""
    rng = random.Random(seed)
    settings = POLICIES[seed % len(POLICIES)]
    ledger = Ledger()
    producers = [
        Producer(number, ledger, random.Random(rng.random()), is_idempotent=number % 2 == 0)
        for number in range(rng.randint(2, 5))
    ]
    idempotent = {each.number for each in producers if each.is_idempotent}
    data, log = folder / "data", folder / "log"
    tears: list[Tear] = []
    for kill in range(KILLS + 1):
        with trionet_broker_process(data, settings=settings, log=log) as (address, process):
            check_cuts(log, tears)
            if kill == 0:
                trio.run(make_topic, address, rng.choice(SEGMENT_BYTES))
            for partition in range(PARTITIONS):
                ledger.check(partition, trio.run(read_all, address, partition), idempotent)
            if kill < KILLS:
                ledger.after(rng.choice((1, 30, 200)), process.kill)
                trio.run(load, address, producers)
                assert -9 == process.wait()
        if kill < KILLS:
            tears = [
                tear
                for partition in range(PARTITIONS)
                if (tear := tear_tail(data, partition, ledger, rng)) is not None
            ]
    assert any(ledger.acknowledged)


def tear_tail(data: Path, partition: int, ledger: Ledger, rng: random.Random) -> Tear | None:
    """Spoil the end of the newest file, after what was acknowledged; None: left as it is."""
    path = max((data / f"{TOPIC}-{partition}").glob("*.log"))
    content = path.read_bytes()
    offset = last_base = int(path.stem)
    end = last_size = 0
    for position, header in iter_batches(content):
        last_base, last_size = header.base_offset, header.size
        offset, end = header.last_offset + 1, position + header.size
    if end < len(content):
        # The kill itself: between two pages of a write the kernel looks for a fatal signal.
        return Tear(f"{TOPIC}-{partition}", offset, end, path.name, len(content) - end)
    how = rng.choice(("as it is", "noise", "zeros", "half a batch", "cut"))
    if how == "cut" and last_size and last_base >= ledger.end_offset(partition):
        lost = rng.randint(1, last_size - 1)
        os.truncate(path, end - lost)
        return Tear(f"{TOPIC}-{partition}", last_base, end - last_size, path.name, last_size - lost)
    half = batch(b"half" * rng.randint(1, 1000), base_offset=offset)
    more = {
        "noise": rng.randbytes(rng.randint(1, 5000)),
        "zeros": bytes(rng.randint(1, 5000)),
        "half a batch": half[: rng.randint(1, len(half) - 1)],
    }.get(how)
    if more is None:
        return None
    with path.open("ab") as file:
        file.write(more)
    return Tear(f"{TOPIC}-{partition}", offset, end, path.name, len(more))


def check_cuts(log: Path, tears: list[Tear]) -> None:
    """The broker says of each torn tail what it did: what, where, and how many bytes."""
    found = {
        Tear(partition, int(offset), int(position), file, int(lost))
        for _, partition, offset, position, file, _, lost, newer in CUT.findall(log.read_text())
        if newer == "0"
    }
    assert set(tears) == found, log.read_text()


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(SEEDS))
def test_acknowledged_records_survive_kills(seed: int, tmp_path: Path) -> None:
    live(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_acknowledged_records_survive_a_few_kills(seed: int, tmp_path: Path) -> None:
    live(seed, tmp_path)


def test_a_lost_record_is_found_out() -> None:
    """The check itself can fail."""
    ledger = Ledger()
    ledger.acknowledged[0] = {0: b"0 0 ", 1: b"0 1 "}

    ledger.check(0, [(0, b"0 0 "), (1, b"0 1 ")], {0})
    with pytest.raises(AssertionError, match="lost or changed offset 1"):
        ledger.check(0, [(0, b"0 0 ")], {0})
    with pytest.raises(AssertionError, match="twice or moved, of 0"):
        ledger.check(0, [(0, b"0 0 "), (1, b"0 1 "), (2, b"0 1 ")], {0})
    with pytest.raises(AssertionError, match="gaps"):
        ledger.check(0, [(0, b"0 0 "), (2, b"0 1 ")], set())
