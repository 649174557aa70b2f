"""The delays by window, carrier and route: what Spark computes of the stream of flights.

Planes and weather are files of the data set and stay as they are: the stream is joined with them,
and each micro-batch finds them in the session's cache.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from demo.windows import Windows

#: As airlines count: up to a quarter of an hour is in time.
LATE_MINUTES = 15
#: Rain or snow, or less to be seen than this many miles.
CLEAR_MILES = 3
#: The fields of a flight that are looked at.
FLIGHT = (
    "year int, minute int, time_hour string, carrier string, origin string, dest string,"
    " tailnum string, dep_delay int, arr_delay int"
)
_TIME = "yyyy-MM-dd'T'HH:mm:ss'Z'"


def delays(
    records: DataFrame, planes: DataFrame, weather: DataFrame, windows: Windows
) -> DataFrame:
    """The results as records: a row for each window, carrier and route, once the window is closed.

    Args:
        records: of the topic of flights.
        planes: from :func:`read_planes`.
        weather: from :func:`read_weather`.
        windows: how long they are, and how long they wait.

    Returns:
        ``key`` and ``value`` as JSON. The key is the window, carrier and route, so that a reader
        can recognise a row that it gets twice after a micro-batch was repeated.
    """
    flights = (
        records.select(f.from_json(f.col("value").cast("string"), FLIGHT).alias("flight"))
        .select("flight.*")
        .withColumn("scheduled", f.expr("timestamp(time_hour) + make_dt_interval(0, 0, minute)"))
        .withWatermark("scheduled", f"{windows.delay} seconds")
        .join(f.broadcast(planes), "tailnum", "left")
        .join(f.broadcast(weather), ["origin", "time_hour"], "left")
    )
    window = f.window(
        "scheduled", f"{windows.length} seconds", startTime=f"{windows.offset} seconds"
    )
    grouped = flights.groupBy(window.alias("window"), "carrier", "origin", "dest")
    results = grouped.agg(*_statistics()).withColumns(
        {name: f.date_format(f"window.{name}", _TIME) for name in ("start", "end")}
    )
    key = ["start", "end", "carrier", "origin", "dest"]
    value = [*key, *results.drop("window", *key).columns]
    return results.select(
        f.to_json(f.struct(*key)).alias("key"),
        f.to_json(f.struct(*value), {"ignoreNullFields": "false"}).alias("value"),
    )


def _statistics() -> list[Column]:
    delay, is_bad = f.col("dep_delay"), f.col("is_bad")
    return [
        f.count("*").alias("flights"),
        f.count(delay).alias("departed"),  # a cancelled flight has no delay
        f.count_if(delay > LATE_MINUTES).alias("late"),
        f.avg(delay).alias("delay_mean"),
        f.percentile_approx(delay, 0.9).alias("delay_p90"),
        f.max(delay).alias("delay_max"),
        f.avg("arr_delay").alias("arrival_delay_mean"),
        f.count_if(is_bad & delay.isNotNull()).alias("bad_weather_departed"),
        f.avg(f.when(is_bad, delay)).alias("bad_weather_delay_mean"),
        f.sum(f.when(delay.isNotNull(), f.col("seats"))).alias("seats"),
        f.avg(f.col("year") - f.col("built")).alias("plane_years_mean"),
    ]


def read_planes(spark: SparkSession, folder: Path) -> DataFrame:
    """Which seats a plane has and when it was built, by its ``tailnum``."""
    return _table(spark, folder / "planes.csv").selectExpr(
        "tailnum", "int(seats) seats", "int(year) built"
    )


def read_weather(spark: SparkSession, folder: Path) -> DataFrame:
    """Whether the weather is bad, by ``origin`` and ``time_hour``."""
    return _table(spark, folder / "weather.csv").selectExpr(
        "origin",
        "time_hour",
        f"coalesce(double(precip) > 0, false) or coalesce(double(visib) < {CLEAR_MILES}, false)"
        " is_bad",
    )


def _table(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.csv(str(path), header=True, nullValue="NA", enforceSchema=False)
