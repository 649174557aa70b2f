"""A power cut of the whole broker: what was acknowledged with ``flush.messages=1`` is there.

The broker runs as a process under strace, since SQLite's calls pass by everything else. What may be
on the disk afterwards is made up as for the log alone (``tests/broker/log/test_power_loss.py``).
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
import trio

from support.acknowledged import PARTITIONS, TOPIC, Ledger, Producer, load, read_all
from support.calls import append, create_topic, describe_topics
from support.client import connect, local_port
from support.crash import Link, Note, Recorder, Sync, Tree, power_cut, read_tree, write_tree
from support.processes import child_of
from support.traced import Traced, calls_of, strace, strace_works
from support.trionet_process import trionet_broker_process
from trionet import open_broker
from trionet.errors import TrionetError

# Checkpoints are written often: two files take turns, and one of them has two names meanwhile.
SETTINGS = {
    "log.flush.interval.messages": "1",
    "log.flush.offset.checkpoint.interval.ms": "100",
}
LIVES = 5
CUTS_PER_LIFE = 10
BATCHES = 100

pytestmark = pytest.mark.skipif(
    not strace_works(), reason="strace is not installed, or may not trace"
)


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder where syncing costs nothing: what a sync means is the simulation's business."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as path:
        yield Path(path)


@contextmanager
def traced_broker(data: Path, trace: Path) -> Iterator[tuple[str, int]]:
    """A broker under strace, ended by SIGKILL: its address and its process id."""
    with trionet_broker_process(data, settings=SETTINGS, before=strace(trace)) as (address, tracer):
        pid = child_of(tracer)
        try:
            yield address, pid
        finally:
            os.kill(pid, signal.SIGKILL)
            tracer.wait()


@attrs.frozen
class Life:
    """A life of a broker: its calls, what it acknowledged, and its topic."""

    recorder: Recorder
    ledger: Ledger
    idempotent: set[int]
    topic_port: int
    topic_id: bytes
    left: Tree
    """What its files really held when it was killed."""


def live(disk: Path, rng: random.Random) -> Life:
    data, trace = disk / "data", disk / "trace"
    data.mkdir()
    recorder = Recorder(data)
    ledger = Ledger()
    producers = [
        Producer(number, ledger, random.Random(rng.random()), is_idempotent=number % 2 == 0)
        for number in range(3)
    ]

    async def work(address: str) -> tuple[int, bytes]:
        async with connect(address) as client:
            port = local_port(client)
            topic = await create_topic(client, TOPIC, PARTITIONS, internal_segment_bytes=120_000)
            with trio.CancelScope() as scope:
                ledger.after(BATCHES, scope.cancel)
                await load(address, producers)
        return port, topic.topic_id

    with traced_broker(data, trace) as (address, _):
        port, topic_id = trio.run(work, address)
    Traced(recorder, lambda *sent: (sent[0], int.from_bytes(sent[1][4:8], "big"))).follow(trace)
    left = read_tree(data)
    shutil.rmtree(data)
    trace.unlink()
    return Life(recorder, ledger, {0, 2}, port, topic_id, left)


async def check_cut(life: Life, until: int, root: Path) -> int:
    """Open what is left; how many batches had to be there."""
    notes = [each.value for each in life.recorder.operations[:until] if isinstance(each, Note)]
    kept = Ledger()
    for note in notes:
        if note in life.ledger.answers:
            kept.acknowledge(*life.ledger.answers[note])
    async with open_broker(SETTINGS, log_dirs=str(root)) as broker:
        address = broker.bootstrap_servers
        async with connect(address) as client:
            topics = await describe_topics(client)
        found = [(topic.name, topic.topic_id, len(topic.partitions)) for topic in topics]
        expected = [(TOPIC, life.topic_id, PARTITIONS)]
        if (life.topic_port, 1) in notes:
            assert expected == found
        else:
            assert found in ([], expected)
        for partition in range(PARTITIONS if found else 0):
            kept.check(partition, await read_all(address, partition), life.idempotent)
    return sum(map(len, kept.acknowledged))


def cut(life: Life, disk: Path, seed: int) -> int:
    rng = random.Random(seed)
    until = rng.randint(0, len(life.recorder.operations))
    root = disk / f"cut-{seed}"
    write_tree(root, power_cut(life.recorder, until, rng))
    try:
        return trio.run(check_cut, life, until, root)
    finally:
        shutil.rmtree(root)


@pytest.mark.slow
def test_acknowledged_records_and_topics_survive_a_few_power_cuts(disk: Path) -> None:
    life = live(disk, random.Random(1))

    assert sum(cut(life, disk, seed) for seed in range(CUTS_PER_LIFE)) > 0


@pytest.mark.crash
@pytest.mark.parametrize("number", range(LIVES))
def test_acknowledged_records_and_topics_survive_power_cuts(number: int, disk: Path) -> None:
    life = live(disk, random.Random(number))

    assert sum(cut(life, disk, 100 * number + seed) for seed in range(CUTS_PER_LIFE)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", [r"\.log$", "sqlite"])
def test_files_that_are_not_synced_are_found_out(kind: str, disk: Path) -> None:
    life = live(disk, random.Random(1))
    operations = life.recorder.operations
    files = {
        each.node
        for each in operations
        if re.search(kind, getattr(each, "name", "")) and hasattr(each, "node")
    }
    operations[:] = [
        Sync(each.node, 0) if isinstance(each, Sync) and each.node in files else each
        for each in operations
    ]

    found_out = 0
    for seed in range(20):
        try:
            cut(life, disk, seed)
        except (AssertionError, TrionetError):
            found_out += 1
    assert found_out > 0


def begins_with(content: bytes | None, beginning: bytes | None) -> bool:
    """Whether both are files, not folders, and one is the other's beginning."""
    return content is not None and beginning is not None and content.startswith(beginning)


def lies_between(before: Tree, after: Tree) -> str:
    """The one call that changed a tree into another, or all that is different."""
    made, gone = sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys())
    # SQLite writes its -shm through memory, and makes it anew when it is opened.
    written = [
        path
        for path in sorted(before.keys() & after.keys())
        if before[path] != after[path] and not path.endswith("-shm")
    ]
    match made, gone, written:
        case [], [], []:
            return "nothing"
        case [], [], [path] if begins_with(after[path], before[path]):
            return "write"
        case [path], [], [] if not after[path]:
            return "make"
        case [], [_], []:
            return "remove"
        case ([path], [old], []) | ([], [old], [path]) if after[path] == before[old]:
            return "rename"
    return f"made {made}, gone {gone}, written {written}"


@pytest.mark.parametrize(
    ("before", "after", "call"),
    [
        ({"a": b"1"}, {"a": b"1"}, "nothing"),
        ({"a": b"1", "x-shm": b"1"}, {"a": b"1", "x-shm": b"2"}, "nothing"),
        ({"a": b"1"}, {"a": b"12"}, "write"),
        ({"a": b""}, {"a": b"1"}, "write"),
        ({"a": b"1"}, {"a": b"2"}, "made [], gone [], written ['a']"),
        ({"a": b""}, {"a": None}, "made [], gone [], written ['a']"),
        ({"a": None}, {"a": b"1"}, "made [], gone [], written ['a']"),
        ({}, {"a": b""}, "make"),
        ({}, {"a": None}, "make"),
        ({}, {"a": b"1"}, "made ['a'], gone [], written []"),
        ({"a": b"1"}, {}, "remove"),
        ({"a": b"1"}, {"b": b"1"}, "rename"),
        ({"a": b"1", "b": b"0"}, {"b": b"1"}, "rename"),
        ({"a": b"1"}, {"b": b"2"}, "made ['b'], gone ['a'], written []"),
        ({"a": b"1", "b": b"1"}, {"a": b"12", "b": b"12"}, "made [], gone [], written ['a', 'b']"),
    ],
)
def test_one_call_between_two_trees_is_recognized(before: Tree, after: Tree, call: str) -> None:
    assert call == lies_between(before, after)


@pytest.mark.slow
def test_the_trace_reports_every_change_of_the_files(disk: Path) -> None:
    life = live(disk, random.Random(2))
    operations = life.recorder.operations
    count = len(operations)
    nodes = {each.node for each in operations if isinstance(each, Link)}
    operations += [Sync(node, count) for node in (1, *nodes)]

    synced = power_cut(life.recorder, len(operations), random.Random(0))
    # The broker is killed at any moment: also between a call and the line that reports it.
    assert lies_between(synced, life.left) in {"nothing", "write", "make", "remove", "rename"}


def test_the_log_is_synced_before_the_response_is_sent(disk: Path) -> None:
    data, trace = disk / "data", disk / "trace"

    async def produce_once(address: str) -> None:
        async with connect(address) as client:
            await create_topic(client, TOPIC)
            await append(client, b"needle", topic=TOPIC)
            # When this gets a response, strace has seen the end of what went before.
            await describe_topics(client)

    with traced_broker(data, trace) as (address, _):
        trio.run(produce_once, address)

    calls = list(calls_of(trace))
    log = str(data / f"{TOPIC}-0" / f"{0:020}.log")
    [written] = [
        number
        for number, call in enumerate(calls)
        if call.path == log and b"needle" in b"".join(call.strings)
    ]
    synced = next(
        number
        for number, call in enumerate(calls)
        if call.path == log and call.name in {"fsync", "fdatasync"} and call.begun > written
    )
    answer = next(call for call in calls[written:] if call.path.startswith("TCP"))
    # It began when more calls had returned than those up to the sync.
    assert answer.begun > synced
