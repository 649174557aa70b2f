""""""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from trionet.errors import ConfigError
from trionet.spark._options import SinkOptions, SourceOptions
from trionet.spark.pipeline._settings import JobSettings, split


def settings(**changes: Any) -> JobSettings:
    return attrs.evolve(
        JobSettings(
            bootstrap_servers="localhost:9092",
            topic="requests",
            results_topic="requests-results",
            folder="/tmp/results",
            checkpoint="/tmp/results/_checkpoint",
            master="local[*]",
            delay_seconds=0.25,
            interval_seconds=10,
            max_records=None,
            available_now=False,
            allow_data_loss=False,
        ),
        **changes,
    )


def test_a_job_begins_with_the_first_record_and_stops_at_a_loss() -> None:
    source = SourceOptions.parse(settings().source(), is_stream=True)

    assert "Earliest()" == repr(source.starting)
    assert source.fail_on_data_loss
    assert source.max_offsets_per_trigger is None


def test_options_of_the_job_are_those_of_its_source() -> None:
    given = settings(max_records=500, allow_data_loss=True)

    source = SourceOptions.parse(given.source(), is_stream=True)

    assert (500, False) == (source.max_offsets_per_trigger, source.fail_on_data_loss)
    assert 250_000 == given.delay_us
    assert 30 * 86_400_000_000 == given.age_max_us


@pytest.mark.parametrize("name", ["folder", "checkpoint"])
@pytest.mark.parametrize("path", ["results[1]", "s3a://telemetry/{broker}", "a*", "b?"])
def test_a_path_that_spark_would_take_for_a_pattern_is_refused(name: str, path: str) -> None:
    """It would be written as it is, and not be found again."""
    with pytest.raises(ConfigError, match="as a pattern"):
        settings(**{name: path})


@pytest.mark.parametrize("seconds", [0, 3599, 36_500 * 86_400 + 1, float("inf")])
def test_an_age_that_leaves_out_all_or_nothing_is_refused(seconds: float) -> None:
    with pytest.raises(ConfigError, match="--max-age: must be from 1h to 36500d"):
        settings(age_max_seconds=seconds)


def test_a_setting_of_one_client_does_not_disturb_the_others() -> None:
    client = {"security.protocol": "SSL", "fetch.max.bytes": "1000", "linger.ms": "5"}
    given = settings(client=client)

    source = SourceOptions.parse(given.source(), is_stream=True).client
    sink = SinkOptions.parse(given.sink()).client

    assert ("SSL", "1000") == (source["security.protocol"], source["fetch.max.bytes"])
    assert ("SSL", "5") == (sink["security.protocol"], sink["linger.ms"])
    assert {"security.protocol": "SSL"} == given.admin()


def test_a_setting_that_no_client_has_is_refused_with_what_comes_nearest() -> None:
    with pytest.raises(ConfigError, match=r"security\.protocol"):
        settings(client={"security.protocl": "SSL"})


def test_results_do_not_go_to_the_topic_that_is_read() -> None:
    with pytest.raises(ConfigError, match="--results-topic"):
        settings(results_topic="requests")


def test_settings_are_of_the_clients_or_of_spark() -> None:
    client, spark = split({"kafka.linger.ms": "5", "spark.executor.memory": "4g"})

    assert ({"linger.ms": "5"}, {"spark.executor.memory": "4g"}) == (client, spark)


@pytest.mark.parametrize("key", ["linger.ms", "kafka.bootstrap.servers"])
def test_other_settings_are_refused(key: str) -> None:
    with pytest.raises(ConfigError):
        split({key: "x"})
