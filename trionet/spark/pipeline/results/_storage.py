"""Files beside a query's own, on whatever file system Spark can write: where its state is."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import SparkSession

from ..aggregation._watermarks import Remembered

_OPEN: Final = "trionet/open"
_REMEMBERED: Final = "trionet/remembered"


class Storage:
    """Hadoop's file system, as Spark sees it.

    Args:
        spark: the session.
    """

    def __init__(self, spark: SparkSession) -> None:
        # A gateway's attributes are Java's packages: nothing of it is typed.
        self._jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 -- there is no other way
        self._settings: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none, if there is no such folder."""
        system, path = self._at(folder)
        if not system.exists(path):
            return []
        return sorted(each.getPath().getName() for each in system.listStatus(path))

    def delete(self, folder: str) -> None:
        """Delete a folder with all that is in it, if it is there."""
        system, path = self._at(folder)
        system.delete(path, True)

    def write(self, name: str, text: str) -> None:
        """Write a file, in place of one that is there."""
        system, path = self._at(name)
        out = system.create(path, True)
        try:
            out.write(bytearray(text.encode()))
        finally:
            out.close()

    def text(self, name: str) -> str:
        """What is in a file; nothing, if there is none."""
        system, path = self._at(name)
        if not system.exists(path):
            return ""
        source = system.open(path)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(source)).decode()
        finally:
            source.close()

    def _at(self, name: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(name)
        return path.getFileSystem(self._settings), path


class State:
    """What a job keeps beside its checkpoint: open minutes, and what it remembers of each batch.

    A micro-batch is repeated until Spark has noted that it is done. So nothing that it begins with
    is deleted before the next one, and what it writes has names with its number, and replaces what
    an earlier try has left.

    Args:
        storage: the file system.
        checkpoint: of the query.
    """

    def __init__(self, storage: Storage, checkpoint: str) -> None:
        self._storage = storage
        self._checkpoint = checkpoint.rstrip("/")

    def open_folder(self, batch: int) -> str:
        """Where the rows of sums of a micro-batch are."""
        return f"{self._checkpoint}/{_OPEN}/batch={batch}"

    def before(self, batch: int) -> Remembered:
        """What was remembered after the micro-batch before this one."""
        known = [number for number in self._numbers() if number < batch]
        if not known:
            return Remembered()
        return Remembered.from_json(self._storage.text(self._file(max(known))))

    def remember(self, after: Remembered) -> None:
        """Keep what is known after a micro-batch."""
        self._storage.write(self._file(after.batch), after.to_json())

    def forget(self, before: Remembered) -> None:
        """Delete what nobody needs any more.

        Args:
            before: what the micro-batch begins with that is under way.
        """
        for number in self._numbers():
            if number < before.batch:
                self._storage.delete(self._file(number))
        for name in self._storage.names(f"{self._checkpoint}/{_OPEN}"):
            number = int(name.partition("=")[2] or -1)
            if number <= before.batch and number not in before.open_batches:
                self._storage.delete(self.open_folder(number))

    def _numbers(self) -> list[int]:
        names = self._storage.names(f"{self._checkpoint}/{_REMEMBERED}")
        return [int(stem) for name in names if (stem := name.removesuffix(".json")).isdecimal()]

    def _file(self, batch: int) -> str:
        return f"{self._checkpoint}/{_REMEMBERED}/{batch}.json"
