"""A broker is killed at each step of its cleaner in turn, while producers write."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from compaction.killed_broker import KILLED
from compaction.ledger import Attempt, Fate, Ledger, Seen
from support.cache import Unavailable
from support.calls import bytes_of, create_topic, fetch_request, only_partition, produce_request
from support.client import Client, connect
from support.eventually import eventually
from support.kafka_jars import class_path, java
from support.kafka_tools import DUMP_LOG
from support.processes import SAME_TRIONET, first_line, running
from support.transaction_calls import Identity, ask_identity, end
from trionet.protocol import error_codes
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest
from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records._records import decode_batch, encode_batch

TOPIC = "table"
#: The last step of each round, counted from the first file with such a name: those of the first
#: groups of segments, and those at the end of a cleaning.
STEPS = (
    *((".cleaned", step) for step in range(1, 61)),
    *(("cleaner-offset", step) for step in range(1, 11)),
)
#: More than what is left of all keys and segments, and less than what many rounds write.
CLEAN_BYTES = 100_000
PATIENCE_SECONDS = 30
_READY = "trionet broker ready: PLAINTEXT://"
_TESTS = Path(__file__).parents[1]
_SETTINGS = {
    "log.cleaner.backoff.ms": "0",
    "auto.create.topics.enable": "false",
    # Without it, a killed transaction would be in the way of the cleaner for a minute.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
_TOPIC_SETTINGS: dict[str, Any] = {
    "cleanup_policy": "compact",
    "internal_segment_bytes": 3000,
    "min_cleanable_dirty_ratio": 0,
    "delete_retention_ms": 200,
}
# Log lines that a kill does not explain.
_BAD_LINE = re.compile(r"\b(ERROR|CRITICAL)\b|Traceback|uncleanable|missing|damaged|lost")
# That offsets have gaps is what compaction is about.
_HARMLESS = re.compile(r"SLF4J:|Non-consecutive offsets in |  -?\d+ is followed by \d+$")


@attrs.define
class Outcome:
    """What the rounds have shown.

    Attributes:
        steps: how often the broker was killed at which call.
        written: the number of acknowledged records.
        left: the number of records that the last consumer has read.
        dumps: how often Kafka's tool has read all files.
        wrong: what was wrong, with the number of the round.
    """

    steps: Counter[str] = attrs.Factory(Counter)
    written: int = 0
    left: int = 0
    dumps: int = 0
    wrong: list[str] = attrs.Factory(list)


class Writer:
    """An idempotent producer, which goes on with its id and its last batch after each kill."""

    def __init__(self, name: bytes, ledger: Ledger, rng: random.Random) -> None:
        self._keys = [b"%s-%d" % (name, number) for number in range(8)]
        self._ledger = ledger
        self._rng = rng
        self._identity: Identity | None = None
        self._sequence = 0
        self._unanswered: list[Attempt] = []

    async def run(self, address: str) -> None:
        """Write until the connection ends."""
        with contextlib.suppress(EOFError, OSError, trio.BrokenResourceError):
            async with connect(address) as client:
                while True:
                    count = self._rng.randint(1, 3)
                    self._unanswered = [self._next() for _ in range(count)]
                    await self.settle(client)

    async def settle(self, client: Client) -> None:
        """Send what had no response yet, maybe again."""
        if self._identity is None:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            response = await client.call(request, 5)
            self._identity = response.producer_id, response.producer_epoch
        if not self._unanswered:
            return
        await _send(client, self._unanswered, self._identity, self._sequence)
        self._sequence += len(self._unanswered)
        for attempt in self._unanswered:
            attempt.fate = Fate.WRITTEN
        self._unanswered = []

    def _next(self) -> Attempt:
        return self._ledger.note(self._rng.choice(self._keys), self._rng.random() < 0.2)


class Transactor:
    """A transactional producer, of which a new instance starts after each kill."""

    def __init__(self, name: bytes, ledger: Ledger, rng: random.Random) -> None:
        self._id = name.decode()
        self._keys = [b"%s-%d" % (name, number) for number in range(8)]
        self._ledger = ledger
        self._rng = rng

    async def run(self, address: str) -> None:
        """Write until the connection ends."""
        with contextlib.suppress(EOFError, OSError, trio.BrokenResourceError):
            async with connect(address) as client:
                identity = await self.start(client)
                while True:
                    identity = await self._transact(client, identity)

    async def start(self, client: Client) -> Identity:
        """Begin as a new instance, which aborts the transaction of the last one."""
        while True:
            response = await ask_identity(client, self._id)
            if not response.error_code:
                return response.producer_id, response.producer_epoch
            assert error_codes.CONCURRENT_TRANSACTIONS == response.error_code

    async def _transact(self, client: Client, identity: Identity) -> Identity:
        attempts: list[Attempt] = []
        for _ in range(self._rng.randint(1, 3)):
            key = self._rng.choice(self._keys)
            attempt = self._ledger.note(key, self._rng.random() < 0.2)
            await _send(client, [attempt], identity, len(attempts), self._id)
            attempts.append(attempt)
        is_commit = self._rng.random() < 0.7
        if not is_commit:
            # Nothing but its own request can commit it.
            for attempt in attempts:
                attempt.fate = Fate.ABORTED
        response = await end(client, identity, commit=is_commit, id=self._id)
        assert 0 == response.error_code
        if is_commit:
            for attempt in attempts:
                attempt.fate = Fate.WRITTEN
        return response.producer_id, response.producer_epoch


async def _send(
    client: Client,
    attempts: Sequence[Attempt],
    identity: Identity,
    sequence: int,
    transactional_id: str | None = None,
) -> None:
    """Append the records as one batch."""
    now_ms = time.time_ns() // 1_000_000
    data = encode_batch(
        [
            (
                now_ms,
                each.key,
                None if each.is_tombstone else b"value",
                [("number", b"%d" % each.number)],
            )
            for each in attempts
        ],
        producer_id=identity[0],
        producer_epoch=identity[1],
        base_sequence=sequence,
        transactional=transactional_id is not None,
    )
    request = produce_request(TOPIC, data)
    request.transactional_id = transactional_id
    response = await client.call(request, 12)
    [answer] = response.responses[0].partition_responses
    assert 0 == answer.error_code, answer


def kill_rounds(count: int, seed: int, folder: Path, dump_every: int) -> Iterator[Outcome]:
    """Kill the broker that many times; yields the outcome so far after each round.

    Args:
        count: how often.
        seed: of what is written.
        folder: an empty one, for the broker.
        dump_every: after how many rounds Kafka's tool reads the files.
    """
    rng = random.Random(seed)
    outcome, ledger = Outcome(), Ledger()
    writers = [Writer(b"w%d" % number, ledger, rng) for number in range(2)]
    transactors = [Transactor(b"x%d" % number, ledger, rng) for number in range(2)]
    log = folder.with_suffix(".log")
    for number in range(count + 1):
        is_last = number == count
        first, step = ("nothing", 0) if is_last else STEPS[number % len(STEPS)]
        worker = "process" if number % 4 == 3 else "thread"
        with _broker(folder, log, first, step, worker) as (address, process):
            if number == 0:
                trio.run(_make_topic, address)
            # Sometimes it is read while it is cleaned.
            wrong = trio.run(_unclean, folder / f"{TOPIC}-0") if is_last or number % 3 else []
            seen = trio.run(_read_all, address, writers, transactors)
            wrong += ledger.mistakes(seen)
            if not is_last and not wrong:
                wrong += trio.run(_load, address, writers, transactors, process)
        if not is_last and not wrong:
            outcome.steps[_killed_at(log)] += 1
        wrong += [line for line in log.read_text().splitlines() if _BAD_LINE.search(line)]
        if (number + 1) % dump_every == 0 or is_last:
            _stop_cleanly(folder, log)
            wrong += complaints_of_kafka(folder / f"{TOPIC}-0")
            outcome.dumps += 1
        outcome.written, outcome.left = ledger.written, len(seen)
        outcome.wrong += [f"round {number}, {first} {step}: {each}" for each in wrong]
        yield outcome
        if wrong:
            return


@contextlib.contextmanager
def _broker(
    folder: Path, log: Path, first: str = "nothing", step: int = 0, worker: str = "thread"
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    arguments = ["broker", "--listen", "127.0.0.1:0", "--data", str(folder)]
    for key, value in _SETTINGS.items():
        arguments += ["--set", f"{key}={value}"]
    program = [sys.executable, "-m", "compaction.killed_broker"]
    command = [*program, first, str(step), worker, *arguments]
    path = f"{SAME_TRIONET['PYTHONPATH']}:{_TESTS}"
    with running(command, env={"PYTHONPATH": path}, stderr=log) as process:
        yield first_line(process).removeprefix(_READY), process


async def _unclean(folder: Path) -> list[str]:
    """Wait until the cleaner has done its work; returns what is wrong if it does not."""

    async def size() -> int:
        return sum(_sizes(folder))

    with trio.move_on_after(PATIENCE_SECONDS):
        await eventually(size, CLEAN_BYTES.__ge__)
        return []
    return [f"there are still {await size()} bytes after {PATIENCE_SECONDS} s"]


def _sizes(folder: Path) -> Iterator[int]:
    for path in folder.glob("*.log"):
        with contextlib.suppress(FileNotFoundError):  # it was swapped meanwhile
            yield path.stat().st_size


async def _make_topic(address: str) -> None:
    async with connect(address) as client:
        await create_topic(client, TOPIC, **_TOPIC_SETTINGS)


async def _read_all(
    address: str, writers: list[Writer], transactors: list[Transactor]
) -> list[Seen]:
    """Settle what a kill has interrupted, and read what a consumer of committed records sees."""
    async with connect(address) as client:
        for transactor in transactors:
            await transactor.start(client)
        for writer in writers:
            await writer.settle(client)
        return await _committed(client)


async def _committed(client: Client) -> list[Seen]:
    seen: list[Seen] = []
    offset, limit = 0, 1
    while offset < limit:
        # Of one response only: by the next one, the marker may be gone with what it has aborted.
        skipped: set[int] = set()
        request = fetch_request({TOPIC: {0: offset}}, isolation_level=1)
        data = only_partition(await client.call(request, 12))
        assert 0 == data.error_code
        limit = data.last_stable_offset
        aborted = sorted(
            (each.first_offset, each.producer_id) for each in data.aborted_transactions or ()
        )
        records = bytes_of(data)
        for position, header in iter_batches(records):
            while aborted and aborted[0][0] <= header.last_offset:
                skipped.add(aborted.pop(0)[1])
            offset = header.last_offset + 1
            if header.is_control:
                skipped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipped):
                seen += [
                    Seen(at, key or b"", int(headers[0][1] or b""), value is None)
                    for at, _, key, value, headers in decode_batch(records, position)
                ]
    return seen


async def _load(
    address: str,
    writers: list[Writer],
    transactors: list[Transactor],
    process: subprocess.Popen[bytes],
) -> list[str]:
    """Write until the broker has ended; returns what was wrong with its end."""
    process.send_signal(signal.SIGUSR1)
    with trio.move_on_after(PATIENCE_SECONDS) as patience:
        async with trio.open_nursery() as nursery:
            for writer in writers:
                nursery.start_soon(writer.run, address)
            for transactor in transactors:
                nursery.start_soon(transactor.run, address)
    if patience.cancelled_caught:
        return [f"no cleaning came to this step within {PATIENCE_SECONDS} s"]
    status = await trio.to_thread.run_sync(process.wait)
    return [] if status == -9 else [f"the broker has ended with {status}"]


def _killed_at(log: Path) -> str:
    lines = [line for line in log.read_text().splitlines() if line.startswith(KILLED)]
    return lines[-1].partition(": ")[2] if lines else "nowhere"


def _stop_cleanly(folder: Path, log: Path) -> None:
    """Let a broker recover the folder, so that every file is complete."""
    with _broker(folder, log) as (_, process):
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def complaints_of_kafka(folder: Path) -> list[str]:
    """What Kafka's dump tool has to say against the files of a partition."""
    complaints: list[str] = []
    for suffix, options in (("log", ["--deep-iteration"]), ("index", []), ("timeindex", [])):
        files = ",".join(str(path) for path in sorted(folder.glob(f"*.{suffix}")))
        quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        command = [java(), *quick, "-cp", class_path(), DUMP_LOG, *options, "--files", files]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        lines = done.stderr.splitlines()
        complaints += [line for line in lines if not _HARMLESS.match(line)]
        complaints += [line for line in done.stdout.splitlines() if "isvalid: false" in line]
        if done.returncode:
            complaints.append(f"the tool has ended with {done.returncode}")
    return complaints


def can_dump() -> bool:
    """Whether Kafka's tool is there."""
    try:
        java()
        class_path()
    except Unavailable:
        return False
    return True
