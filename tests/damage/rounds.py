"""One round: a folder, a damage, and what a broker makes of it."""

from __future__ import annotations

import hashlib
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import trio

from damage.folder import SETTINGS, History, Partition, make
from damage.strike import Strike
from damage.verdict import Heard, complaints, listening, not_served
from support.calls import batch, bytes_of, fetch, produce
from support.client import Client, connect
from trionet.broker.log.recovery._missing_records import MissingRecordsError
from trionet.broker.run._broker import open_broker
from trionet.errors import TrionetError
from trionet.protocol import error_codes
from trionet.protocol.records._batch import check_crc, iter_batches
from trionet.protocol.records._records import decode_batch

NEW_VALUE = b"appended after the damage"
#: No partition of a round has so many batches: a reader that does not get on is found.
_FETCHES_MAX = 2000


@attrs.define
class Outcome:
    """What came of a round.

    Attributes:
        seed: of the round.
        damage: what was done.
        end: how the broker before had ended.
        refusal: why no broker starts any more; None if one does.
        reports: what it said.
        wrong: in words.
    """

    seed: int
    damage: str = ""
    end: str = ""
    refusal: str | None = None
    reports: list[str] = attrs.field(factory=list)
    wrong: list[str] = attrs.field(factory=list)


@attrs.define
class Start:
    """A start of a broker: what it said, and what was found then."""

    heard: Heard
    refusal: str | None = None
    found: dict[Partition, dict[int, bytes | None]] = attrs.field(factory=dict)
    next_offsets: dict[Partition, int] = attrs.field(factory=dict)
    unreadable: dict[Partition, str] = attrs.field(factory=dict)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder where syncing costs nothing."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as path:
        yield Path(path)


def run_round(seed: int, strike: Strike, only: str = "*") -> Outcome:
    """Run one round, in which a file of this pattern is struck."""
    with scratch() as root:
        return trio.run(_run, seed, strike, only, root)


async def _run(seed: int, strike: Strike, only: str, root: Path) -> Outcome:
    rng = random.Random(seed)
    outcome = Outcome(seed)
    with listening():
        history = await make(root, rng)
    outcome.end = "killed" if history.was_killed else "stopped"
    damage = strike(history.folder, rng, only)
    outcome.damage = damage.text
    before = root / "before"
    shutil.copytree(history.folder, before)
    start = await _start(history, loss_allowed=True)
    outcome.refusal, outcome.reports = start.refusal, start.heard.reports
    outcome.wrong += start.heard.tracebacks
    if start.refusal is None and not damage.is_unprotected:
        outcome.wrong += _judged(history, start, outcome)
        again = await _start(history, loss_allowed=True)
        outcome.wrong += _judged_again(start, again)
    if start.heard.losses:
        outcome.wrong += await _refused(history, before)
    return outcome


async def _start(history: History, *, loss_allowed: bool) -> Start:
    with listening() as heard:
        start = Start(heard)
        settings = {**SETTINGS, "log.missing.records.allowed": loss_allowed}
        try:
            async with open_broker(settings, log_dirs=str(history.folder)) as broker:
                for partition in history.acknowledged:
                    async with connect(broker.bootstrap_servers) as client:
                        await _look(client, partition, start)
        except MissingRecordsError as error:
            start.refusal = f"missing: {error}"
        except (TrionetError, OSError) as error:
            start.refusal = f"{type(error).__name__}: {error}"
        except Exception as error:  # boundary: anything else would be a traceback
            start.refusal = "unexpected"
            heard.tracebacks.append(f"{type(error).__name__}: {error!r}")
    return start


async def _look(client: Client, partition: Partition, start: Start) -> None:
    """Append a record, and read all there are."""
    topic, number = partition
    answer = await produce(client, topic, batch(NEW_VALUE), partition=number)
    if answer.error_code:
        start.unreadable[partition] = f"error {answer.error_code} from Produce"
        return
    start.next_offsets[partition] = answer.base_offset
    found: dict[int, bytes | None] = {}
    start.found[partition] = found
    position = answer.log_start_offset
    for _ in range(_FETCHES_MAX):
        data = await fetch(client, topic, position, partition=number)
        if data.error_code == error_codes.CORRUPT_MESSAGE and _is_told(start.heard):
            found[position] = None
            position += 1
            continue
        if data.error_code:
            start.unreadable[partition] = f"error {data.error_code} at offset {position}"
            return
        if position >= data.high_watermark:
            return
        behind = _take(bytes_of(data), position, found)
        if behind <= position:
            start.unreadable[partition] = f"nothing whole at offset {position}"
            return
        position = behind
    start.unreadable[partition] = f"a reader does not get on at offset {position}"


def _is_told(heard: Heard) -> bool:
    """Whether a line says which bytes of which file cannot be read."""
    return any(
        "readers get CORRUPT_MESSAGE" in text and ".log" in text and " byte " in text
        for text in heard.reports
    )


def _take(records: bytes, position: int, found: dict[int, bytes | None]) -> int:
    """Note the values in a response; returns the offset after them.

    After a batch with a wrong CRC, which says nothing of its offsets, is the next offset.
    """
    for at, header in iter_batches(records):
        if not check_crc(records, at, header):
            found[position] = None
            return position + 1
        for record in decode_batch(records, at):
            if record[0] >= position:
                found[record[0]] = record[3]
        position = max(position, header.last_offset + 1)
    return position


def _judged(history: History, start: Start, outcome: Outcome) -> list[str]:
    wrong = []
    for partition in history.acknowledged:
        found = dict(start.found.get(partition, {}))
        next_offset = start.next_offsets.get(partition)
        if next_offset is None and partition in not_served(start.heard.reports):
            continue
        if next_offset is None:
            wrong.append(f"{partition}: {start.unreadable[partition]}")
            continue
        if found.pop(next_offset, NEW_VALUE) not in {NEW_VALUE, None}:
            wrong.append(f"{partition}: the new record is not at its offset {next_offset}")
        if partition in start.unreadable:
            wrong.append(f"{partition}: {start.unreadable[partition]}")
        wrong += complaints(
            history,
            partition,
            found,
            next_offset,
            start.heard.reports,
            unpromised_may_go=history.was_killed,
        )
    return wrong


def _judged_again(start: Start, again: Start) -> list[str]:
    """The next start finds everything as this one left it, and has no loss to report."""
    wrong = [*again.heard.tracebacks]
    if again.refusal is not None:
        return [*wrong, f"the next start is refused: {again.refusal}"]
    wrong += [f"reported again: {text}" for text in again.heard.losses]
    for partition, found in start.found.items():
        left = again.found.get(partition, {})
        gone = [offset for offset in found if offset not in left]
        if gone and partition not in start.unreadable:
            wrong.append(f"{partition}: offset {gone[0]} is gone at the next start")
    return wrong


async def _refused(history: History, before: Path) -> list[str]:
    """What is missing keeps a broker from starting if it must be, and nothing is changed."""
    shutil.rmtree(history.folder)
    shutil.move(before, history.folder)
    records = _records(history.folder)
    start = await _start(history, loss_allowed=False)
    if start.refusal is None or not start.refusal.startswith("missing: "):
        return [f"started, although it may not without these records: {start.refusal}"]
    if records != _records(history.folder):
        return ["the start that was refused has changed what holds records"]
    return start.heard.tracebacks


def _records(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*.log")
    }
