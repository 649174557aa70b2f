"""A session of Spark that runs cases in both formats: ``name TAB format TAB outcome`` for each."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

import trionet
from spark.beside import outcomes
from spark.beside.cases import CASES, Case, Read, Sql, Stream, Write
from spark.beside.topics import StreamTopic, seed_all, settings
from support.spark_jars import connector_jars
from trionet.spark import TrionetDataSource
from trionet.testing._threaded import ThreadedBroker

FORMATS: Final = ("kafka", "trionet")
_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class Session:
    """Runs cases.

    Args:
        spark: the session, which knows both formats.
        broker: has the topics.
        folder: for checkpoints.
    """

    def __init__(self, spark: SparkSession, broker: ThreadedBroker, folder: Path) -> None:
        self._spark = spark
        self._broker = broker
        self._folder = folder
        self._number = 0

    def run(self, case: Case, form: str) -> str:
        """Run a case; return what came of it, errors too."""
        self._number += 1
        run: Callable[[], str] = {
            Read: partial(self._read, case, form),
            Stream: partial(self._stream, case, form),
            Write: partial(self._write, case, form),
            Sql: partial(self._sql, case, form),
        }[type(case)]
        try:
            return run()
        except Exception as error:  # boundary: one case fails, not the session
            return f"error: {outcomes.error_of_spark(_told(error))}"

    def _options(self, options: Mapping[str, str], **topics: str) -> dict[str, str]:
        given = {"kafka.bootstrap.servers": self._broker.bootstrap_servers, **options}
        return {
            name: topics.get(text, text) if name in {"topic", "subscribe"} else text
            for name, text in given.items()
        }

    def _read(self, case: Any, form: str) -> str:
        table = self._spark.read.format(form).options(**self._options(case.options)).load()
        rows = [each.asDict(recursive=True) for each in table.collect()]
        return outcomes.read(rows, table.rdd.getNumPartitions())

    def _stream(self, case: Any, form: str) -> str:
        name = f"t{self._number}"
        topic = StreamTopic(self._broker, name)
        batches: list[str] = []
        for step in case.steps:
            if step not in {"now", "once"}:
                topic.step(step)
                continue
            options = {key: text.replace('"t"', f'"{name}"') for key, text in case.options.items()}
            options = self._options({"subscribe": name, **options})
            table = self._spark.readStream.format(form).options(**options).load()
            writer = table.writeStream.foreachBatch(partial(_keep, batches, name))
            writer = writer.option("checkpointLocation", str(self._folder / name))
            trigger = {"availableNow": True} if step == "now" else {"once": True}
            query = writer.trigger(**trigger).start()
            try:
                query.awaitTermination(60)
                if query.isActive:
                    return "error: it does not end"
            finally:
                query.stop()
            batches.append("|")
        return " ".join(batches)

    def _write(self, case: Any, form: str) -> str:
        names = {each: f"{each}{self._number}" for each in ("t", "u")}
        for name in names.values():
            self._broker.create_topic(name, 2)
        fields = ", ".join(f"`{name}` {kind}" for name, kind in case.columns.items())
        if "topic" in case.columns:
            at = list(case.columns).index("topic")
            rows = [
                tuple(names.get(str(v), v) if n == at else v for n, v in enumerate(each))
                for each in case.rows
            ]
        else:
            rows = list(case.rows)
        table = self._spark.createDataFrame(_typed(rows, case.columns), fields)
        options = self._options(case.options, **names)
        if case.is_stream:
            self._write_stream(table, form, options)
        else:
            writer = table.write.format(form).options(**options)
            (writer if case.mode is None else writer.mode(case.mode)).save()
        return outcomes.written({each: self._broker.records(name) for each, name in names.items()})

    def _write_stream(self, table: DataFrame, form: str, options: dict[str, str]) -> None:
        folder = str(self._folder / f"rows{self._number}")
        table.write.parquet(folder)
        stream = self._spark.readStream.schema(table.schema).parquet(folder)
        writer = stream.writeStream.format(form).options(**options)
        writer = writer.option("checkpointLocation", str(self._folder / f"c{self._number}"))
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination(60)
        finally:
            query.stop()

    def _sql(self, case: Any, form: str) -> str:
        table = f"table{self._number}"
        values = {
            "table": table,
            "written": table if form == "kafka" else f"{table}Out",
            "format": form,
            "servers": self._broker.bootstrap_servers,
        }
        found: list[Any] = []
        for statement in case.statements:
            for name, value in values.items():
                statement = statement.replace(f"{{{name}}}", value)
            found = self._spark.sql(statement).collect()
        return "; ".join(" ".join(map(str, each)) for each in sorted(found, key=str)) or "nothing"


def _keep(batches: list[str], name: str, table: DataFrame, _number: int) -> None:
    if rows := [each.asDict() for each in table.collect()]:
        batches.append(outcomes.offsets(rows, name))


def _typed(rows: list[tuple[object, ...]], columns: Any) -> list[tuple[object, ...]]:
    """Rows whose binary values are bytes."""
    kinds = list(columns.values())

    def typed(kind: str, value: Any) -> object:
        if kind == "binary" and value is not None:
            return value.encode()
        if kind.startswith("array") and value is not None:
            return [(name, None if text is None else text.encode()) for name, text in value]
        return value

    return [tuple(map(typed, kinds, each)) for each in rows]


def _told(error: Exception) -> str:
    """All that Spark tells of an error, the stack of the JVM too."""
    of_java = getattr(error, "_stackTrace", None) or getattr(error, "stackTrace", None) or ""
    return f"{error}\n{of_java}"


def main(names: list[str]) -> None:
    """Run the cases of these names."""
    builder = SparkSession.builder.master("local[2]").appName("beside")
    with tempfile.TemporaryDirectory(prefix="trionet-beside-") as folder:
        places = {"spark.sql.warehouse.dir": folder, "spark.local.dir": folder}
        jars = ",".join(map(str, connector_jars()))
        for key, value in {**_SETTINGS, **places, "spark.jars": jars}.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        spark.dataSource.register(TrionetDataSource)
        with trionet.testing.broker(settings()) as broker:
            seed_all(broker)
            session = Session(spark, broker, Path(folder))
            for name in names:
                for form in FORMATS:
                    outcome = session.run(CASES[name], form).replace("\n", " ").replace("\t", " ")
                    print(name, form, outcome, sep="\t", flush=True)
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
