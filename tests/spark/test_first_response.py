"""A broker that is not there: a query says so within seconds, and only at its first contact."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import trionet
from support.ports import free_ports
from trionet.client.network import _open_client
from trionet.errors import (
    AuthenticationError,
    CallTimedOutError,
    DisconnectedError,
    MetadataTimeoutError,
)
from trionet.spark import _first_response
from trionet.spark._loop_host import host

pytest.importorskip("pyspark", reason="PySpark cannot be imported: pip install 'trionet[spark]'")

from pyspark import TaskContext

from spark import reading
from spark.sink.micro_batches import Query, rows, texts
from trionet.spark._offset_limits import PlainOffsets, from_plain
from trionet.spark._options import SinkOptions
from trionet.spark.sink._messages import BATCH_ID, is_after_first_micro_batch
from trionet.spark.sink._task import write_task

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The limits are shorter, and this process has had no contact with any cluster."""
    monkeypatch.setattr(_open_client, "REFUSED_SECONDS", 0.2)
    monkeypatch.setattr(_first_response, "REACH_SECONDS", 0.4)
    monkeypatch.setattr(_first_response, "_responded", set())
    yield
    host().close()


@pytest.fixture
def nothing() -> str:
    """An address at which nothing listens."""
    [port] = free_ports(1)
    return f"127.0.0.1:{port}"


@pytest.fixture
def silence() -> Iterator[str]:
    """The address of a server that accepts connections, and responds to nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_table_without_a_broker_is_one_sentence(nothing: str) -> None:
    with pytest.raises(DisconnectedError) as caught:
        reading.table(nothing, subscribe="t")

    assert (
        f"nothing listens at {nothing} (connection refused); gave up after 0.2 s: start the broker,"
        " or correct the options that say where it is (kafka.bootstrap.servers) and how to connect;"
        " kafka.default.api.timeout.ms sets how long to wait"
    ) == str(caught.value)
    # Spark shows all frames and causes: those of the loop and of the client are not among them.
    assert caught.value.__suppress_context__
    assert not [each for each in caught.traceback if "/trio/" in str(each.path)]


def test_a_stream_without_a_broker_ends_at_its_first_question(nothing: str) -> None:
    reader = reading.opened(nothing, subscribe="t")

    with pytest.raises(DisconnectedError, match=f"^nothing listens at {nothing}"):
        reader.initialOffset()
    start: PlainOffsets = {"t": {"0": 0}}
    with pytest.raises(DisconnectedError, match=f"^nothing listens at {nothing}"):
        reader.latestOffset(start, reader.getDefaultReadLimit())


def test_a_server_that_is_silent_is_named(silence: str) -> None:
    with pytest.raises(DisconnectedError, match=r"no.* respon.*; gave up after 0\.4 s: start the"):
        reading.table(silence, subscribe="t")


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_a_sink_without_a_broker_is_one_sentence(nothing: str, guarantee: str) -> None:
    def run() -> None:
        if guarantee == "exactly-once":
            Query(nothing, "t").task(0, rows(0, 0))
        else:
            write(nothing)

    with pytest.raises(DisconnectedError, match=rf"^nothing listens at {nothing} .*kafka\.max\.bl"):
        run()


def test_a_sink_whose_cluster_advertises_a_wrong_address_is_one_sentence() -> None:
    [port] = free_ports(1)
    servers, wrong = f"127.0.0.1:{port}", "PLAINTEXT://127.0.0.1:1"
    broker = trionet.testing.broker(
        topics=["t"], listeners=f"PLAINTEXT://{servers}", advertised_listeners=wrong
    )
    with broker, pytest.raises(DisconnectedError, match=r"1:1.* set advertised\.listeners"):
        write(servers)


def write(servers: str, **options: str) -> None:
    """Run a task of a sink."""
    texts_of = {"kafka.bootstrap.servers": servers, "topic": "t", **options}
    write_task(SinkOptions.parse(texts_of), iter([texts(["a"])]))


def test_rejected_credentials_are_one_error() -> None:
    with trionet.testing.broker(topics=["t"], sasl="PLAIN") as broker:
        right = broker.client_config("java")
        servers, jaas = right.pop("bootstrap.servers"), right.pop("sasl.jaas.config")
        options = {f"kafka.{key}": value for key, value in right.items()}
        options["kafka.sasl.jaas.config"] = jaas.replace('password="', 'password="wrong')
        with pytest.raises(AuthenticationError):
            reading.table(servers, subscribe="t", **options)
        with pytest.raises(AuthenticationError):
            write(servers, **options)


def test_the_hint_of_failed_authentication_names_the_option() -> None:
    with trionet.testing.broker(topics=["t"]) as broker:
        options = {
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule"
            ' required username="alice" password="secret";',
        }
        hint = r"set kafka\.security\.protocol=PLAINTEXT"
        with pytest.raises(AuthenticationError, match=hint):
            reading.table(broker.bootstrap_servers, subscribe="t", **options)
        with pytest.raises(AuthenticationError, match=hint):
            write(broker.bootstrap_servers, **options)


def test_a_limit_of_the_user_is_a_wish_to_wait(nothing: str) -> None:
    once = {"kafka_default_api_timeout_ms": 600, "fetchOffset_numRetries": 1}
    with pytest.raises(CallTimedOutError, match=r"\(0\.6 s\): .*connection refused"):
        reading.table(nothing, subscribe="t", **once)
    with pytest.raises(MetadataTimeoutError, match=r"connection refused\); gave up after 0\.6 s"):
        write(nothing, **{"kafka.max.block.ms": "600"})


def test_once_it_has_responded_an_outage_is_waited_for() -> None:
    """Also if Spark asks again much later, when the client has been closed."""
    with trionet.testing.broker(topics={"t": 1}) as broker:
        servers = broker.bootstrap_servers
        reader = reading.opened(servers, subscribe="t", failOnDataLoss=False)
        start = reader.initialOffset()
    host().close()

    with ThreadPoolExecutor() as pool:
        latest = pool.submit(reader.latestOffset, start, reader.getDefaultReadLimit())
        with pytest.raises(TimeoutError):
            latest.result(2 * _first_response.REACH_SECONDS)
        with trionet.testing.broker(listeners=f"PLAINTEXT://{servers}", topics={"t": 1}):
            assert from_plain(start) == from_plain(latest.result())


def test_only_the_first_micro_batch_of_a_stream_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark starts new processes in the middle of a stream, perhaps during an outage."""
    found = {}
    for batch_id in (None, "0", "1"):
        monkeypatch.setattr(TaskContext, "_taskContext", None)
        TaskContext()._localProperties = {} if batch_id is None else {BATCH_ID: batch_id}
        found[batch_id] = is_after_first_micro_batch()

    assert {None: False, "0": False, "1": True} == found
