"""The state that the job keeps from one micro-batch to the next, and where it is stored.

It is stored in the checkpoint directory, on any Hadoop file system. A part of it is the watermark,
and the clocks of brokers that it depends on; see :mod:`._watermark`.

Another part is the signals of earlier minutes, for as long as they are compared: a signal of a
client with the hour before it, one of a wide level with the day before it, too; and an objective is
of three days. Each micro-batch which closes minutes writes them anew, to a file. So neither results
that users delete nor a restart changes what is usual.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

import attrs
from pyspark.sql import SparkSession

from trionet.errors import ConfigError

from ._anomalies import REMEMBERED_MINUTES, TRAILING_MINUTES
from ._fold import MINUTE_US
from ._objectives import REMEMBERED_MINUTES as OBJECTIVE_MINUTES
from ._signals import CLIENT, CLOSED_OF_CLIENT, OBJECTIVE, SERIES, WIDE
from ._watermark import BrokerTime
from .incidents._causes import known_fields
from .incidents._incidents import Incident


@attrs.frozen(kw_only=True)
class Intake:
    """Counts of the records read.

    Attributes:
        requests_read: the number of request records, including late records.
        connections_read: the number of records of closed connections, including late records.
        late: the number of records of both kinds whose minute was already closed.
        malformed: the number of values that are not records of a request log.
        newer: the number of records in a newer, unknown version of the format.
        ahead: the number of records with a time too far in the future.
        old: the number of records with a time too far in the past.
    """

    requests_read: int = 0
    connections_read: int = 0
    late: int = 0
    malformed: int = 0
    newer: int = 0
    ahead: int = 0
    old: int = 0

    @property
    def records(self) -> int:
        """The total number of records read."""
        usable = self.requests_read + self.connections_read
        return usable + self.malformed + self.newer + self.ahead + self.old

    def __add__(self, other: Intake) -> Intake:
        mine, others = attrs.astuple(self), attrs.astuple(other)
        names = [field.name for field in attrs.fields(Intake)]
        return Intake(**{n: a + b for n, a, b in zip(names, mine, others, strict=True)})


@attrs.frozen(kw_only=True)
class JobState:
    """The state of the job after a micro-batch.

    Attributes:
        batch: the number of the micro-batch.
        watermark_us: the watermark, in microseconds since the epoch; None before the first record.
        brokers: the times of the known brokers, by their node ids.
        open_batches: the micro-batches that have rows of open minutes, and the last minute of
            each.
        open_records: the number of log records in the rows of open minutes.
        minutes: the closed minutes with requests that are remembered, as ranges of a first and a
            last minute, ascending.
        history: the micro-batch that has written the remembered signals; -1 for none.
        incidents: the incidents that are not over.
        intake: the counts of the records read since minutes were last closed.
        ahead: by how many minutes the clocks of brokers have been ahead since then, by their node
            ids.
        closed: the number of requests in each minute that the micro-batch has closed.
    """

    batch: int = -1
    watermark_us: int | None = None
    brokers: Mapping[int, BrokerTime] = attrs.field(factory=dict)
    open_batches: Mapping[int, int] = attrs.field(factory=dict)
    open_records: int = 0
    minutes: tuple[tuple[int, int], ...] = ()
    history: int = -1
    incidents: tuple[Incident, ...] = ()
    intake: Intake = Intake()
    ahead: Mapping[int, int] = attrs.field(factory=dict)
    closed: Mapping[int, int] = attrs.field(factory=dict)

    @property
    def closed_before(self) -> int:
        """The first minute that is still open."""
        return 0 if self.watermark_us is None else self.watermark_us // MINUTE_US

    def to_json(self) -> str:
        """Serialize to JSON."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> JobState:
        """Parse the output of :meth:`to_json`, of this or another version.

        What another version has remembered in fields of its own is forgotten.
        """
        read: dict[str, Any] = json.loads(text)
        for name in ("open_batches", "closed"):
            read[name] = {int(key): value for key, value in read.get(name, {}).items()}
        read["minutes"] = tuple(map(tuple, read.get("minutes", ())))
        read["incidents"] = tuple(map(Incident.from_values, read.get("incidents", ())))
        read["intake"] = Intake(**known_fields(Intake, read.get("intake", {})))
        brokers = read.get("brokers", {})
        read["brokers"] = {
            int(node): BrokerTime(**known_fields(BrokerTime, each))
            for node, each in brokers.items()
        }
        read["ahead"] = {int(node): each for node, each in read.get("ahead", {}).items()}
        return cls(**known_fields(cls, read))


#: How many minutes the signals of each level are remembered, up to the last one closed. That one is
#: judged again, with the hour before it, when the next one is.
KEPT: Final[Mapping[int, int]] = {
    **dict.fromkeys((CLIENT, SERIES, CLOSED_OF_CLIENT), TRAILING_MINUTES + 1),
    **dict.fromkeys(WIDE, REMEMBERED_MINUTES),
    OBJECTIVE: OBJECTIVE_MINUTES,
}


def is_kept(last: int) -> str:
    """Return the SQL condition for the signals that are still needed.

    Args:
        last: the last minute that has been closed.
    """
    return " or ".join(
        f"level = {level} and window > {last - minutes}" for level, minutes in KEPT.items()
    )


def minute_ranges(minutes: Sequence[int], last: int) -> tuple[tuple[int, int], ...]:
    """Return minutes as ranges of a first and a last one, without those that are too old.

    Args:
        minutes: the minutes, ascending.
        last: the last minute that has been closed.
    """
    found: list[tuple[int, int]] = []
    for minute in minutes:
        if minute <= last - REMEMBERED_MINUTES:
            continue
        if found and minute == found[-1][1] + 1:
            found[-1] = (found[-1][0], minute)
        else:
            found.append((minute, minute))
    return tuple(found)


def minutes_of(ranges: Iterable[tuple[int, int]]) -> Iterator[int]:
    """Yield the minutes of the output of :func:`minute_ranges`."""
    for first, last in ranges:
        yield from range(first, last + 1)


#: The file in the results directory with the id of the checkpoint that owns it.
_OWNER: Final = "_results_of"
#: The file in the checkpoint with the id of the checkpoint.
_ID: Final = "trionet/id"
_OPEN: Final = "trionet/open"
_HISTORY: Final = "trionet/history"
_STATES: Final = "trionet/remembered"


class Storage:
    """Access to small files on Hadoop file systems, with Spark's configuration.

    Args:
        spark: the Spark session.
    """

    def __init__(self, spark: SparkSession) -> None:
        # Attributes of the gateway are Java packages, without Python types.
        self._jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 -- no public access
        self._settings: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in a directory; an empty list if it does not exist."""
        system, path = self._at(folder)
        if not system.exists(path):
            return []
        return sorted(each.getPath().getName() for each in system.listStatus(path))

    def delete(self, folder: str) -> None:
        """Delete a file, or a directory and its contents, if it exists."""
        system, path = self._at(folder)
        system.delete(path, True)

    def create(self, name: str) -> None:
        """Create an empty file, which is there at once."""
        system, path = self._at(name)
        system.create(path, True).close()

    def write(self, name: str, text: str) -> None:
        """Write a file, replacing an existing file.

        Its readers see the file whole or not at all, also if the job is killed meanwhile.
        """
        unfinished = f"{name}.unfinished"
        system, path = self._at(unfinished)
        out = system.create(path, True)
        try:
            out.write(bytearray(text.encode()))
        finally:
            out.close()
        self.delete(name)
        self.rename(unfinished, name)

    def text(self, name: str) -> str:
        """Return the text of a file; empty if the file does not exist."""
        system, path = self._at(name)
        if not system.exists(path):
            return ""
        source = system.open(path)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(source)).decode()
        finally:
            source.close()

    def rename(self, name: str, target: str) -> None:
        """Rename a file to a name that no file has.

        Its readers see the target whole or not at all: where a rename is a copy, as in object
        storage, an object is there when it is complete.

        Raises:
            OSError: the file was not renamed.
        """
        system, path = self._at(name)
        _, other = self._at(target)
        system.mkdirs(other.getParent())
        if not system.rename(path, other):
            raise OSError(f"{name} cannot be renamed to {target}")

    def matching(self, pattern: str) -> list[str]:
        """Return the paths that match a Hadoop path pattern."""
        system, path = self._at(pattern)
        paths = self._jvm.org.apache.hadoop.fs.FileUtil.stat2Paths(system.globStatus(path))
        # Joined by Scala: each call from Python takes as long as hundreds of paths there.
        joined: str = self._jvm.scala.Predef.genericWrapArray(paths).mkString("\n")
        return joined.split("\n") if joined else []

    def _at(self, name: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(name)
        return path.getFileSystem(self._settings), path


class StateStore:
    """Stores the job's state, including the rows of open minutes, in the checkpoint directory.

    A micro-batch is repeated until Spark has recorded its completion. Therefore, its input is kept
    until the next micro-batch. Its output is stored under the number of the micro-batch, and so
    replaces the output of earlier attempts.

    Args:
        storage: the file system.
        checkpoint: the checkpoint directory of the query.
    """

    def __init__(self, storage: Storage, checkpoint: str) -> None:
        self._storage = storage
        self._checkpoint = checkpoint.rstrip("/")

    def claim(self, folder: str) -> None:
        """Claim a results directory for this checkpoint, or verify an earlier claim.

        With a different checkpoint, all records would be read again and counted twice.

        Raises:
            ConfigError: the directory contains results from another checkpoint.
        """
        owner_file = f"{folder.rstrip('/')}/{_OWNER}"
        id_file = f"{self._checkpoint}/{_ID}"
        owner = self._storage.text(owner_file)
        own_id = self._storage.text(id_file)
        if owner and owner != own_id:
            raise ConfigError(
                f"{folder} contains results from a checkpoint other than {self._checkpoint};"
                " use the checkpoint that they came from, or another directory"
            )
        if not own_id:
            own_id = uuid4().hex
            self._storage.write(id_file, own_id)
        if not owner:
            self._storage.write(owner_file, own_id)

    def open_folder(self, batch: int) -> str:
        """Return the directory for a micro-batch's rows of sums."""
        return f"{self._checkpoint}/{_OPEN}/batch={batch}"

    def history_folder(self, batch: int) -> str:
        """Return the directory for the signals that a micro-batch remembers."""
        return f"{self._checkpoint}/{_HISTORY}/batch={batch}"

    def load_before(self, batch: int) -> JobState:
        """Return the state after the previous micro-batch, or the initial state."""
        known = [number for number in self._numbers() if number < batch]
        if not known:
            return JobState()
        return JobState.from_json(self._storage.text(self._file(max(known))))

    def save(self, after: JobState) -> None:
        """Save the state after a micro-batch."""
        self._storage.write(self._file(after.batch), after.to_json())

    def prune(self, before: JobState) -> None:
        """Delete files that are no longer needed.

        Args:
            before: the state from which the current micro-batch starts.
        """
        for number in self._numbers():
            if number < before.batch:
                self._storage.delete(self._file(number))
        kept = {_OPEN: set(before.open_batches), _HISTORY: {before.history}}
        for kind, numbers in kept.items():
            for name in self._storage.names(f"{self._checkpoint}/{kind}"):
                number = int(name.partition("=")[2] or -1)
                if number <= before.batch and number not in numbers:
                    self._storage.delete(f"{self._checkpoint}/{kind}/{name}")

    def _numbers(self) -> list[int]:
        names = self._storage.names(f"{self._checkpoint}/{_STATES}")
        return [int(stem) for name in names if (stem := name.removesuffix(".json")).isdecimal()]

    def _file(self, batch: int) -> str:
        return f"{self._checkpoint}/{_STATES}/{batch}.json"
