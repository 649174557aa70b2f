"""Sources for what a user names, and those that are loaded later."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from support.client import connect
from support.tls import certificate, client_context, write_pem
from support.watching import watching
from trionet import (
    Broker,
    ConfigError,
    open_admin,
    open_broker,
    open_jafka_broker,
    open_jafka_client,
)
from trionet._util._raising import raise_single_error
from trionet.broker.transactions._transaction import NO_IDENTITY
from trionet.dashboard.model._model import Model
from trionet.dashboard.sources._actions import ActionError, Actions
from trionet.dashboard.sources._jafka_source import NOT_KAFKA
from trionet.dashboard.sources._local_source import NO_METRICS, NoLocalSocketError
from trionet.dashboard.sources._open_source import (
    NO_PLAINTEXT_LISTENER,
    open_remote,
    watch_broker,
)
from trionet.dashboard.sources._source import DeferredSource, JoinedSource, Started

TOKEN = "sixteen-characters-at-least"


async def test_without_metrics_it_is_said_what_the_protocol_does_not_report() -> None:
    async with (
        open_broker(metrics_local_enable=False) as broker,
        open_remote(broker.bootstrap_servers) as source,
        watching(source) as watched,
    ):
        model = await watched.until(lambda m: m.brokers.updated_at and m.apis.missing)

        network = (model.apis, model.connections, model.processors, model.log, model.tasks)
        assert {NO_METRICS} == {section.missing for section in network}
        about = model.about
        assert (broker.bootstrap_servers, "Kafka protocol") == (about.source, about.via)
        assert broker.cluster_id == about.cluster_id
        with pytest.raises(NoLocalSocketError, match="not available over the Kafka protocol"):
            await source.actions.close_connection("any")
        assert {} == model.alarms


async def test_with_metrics_by_tls_and_a_token_everything_is_shown_and_done(tmp_path: Path) -> None:
    settings = {
        "metrics.listener": "https://127.0.0.1:0",
        "metrics.listener.token": TOKEN,
        "listener.name.metrics.ssl.keystore.type": "PEM",
        "listener.name.metrics.ssl.keystore.location": str(
            write_pem(tmp_path / "metrics.pem", certificate())
        ),
    }
    async with open_broker(settings) as broker, connect(broker.bootstrap_servers):
        assert broker.metrics is not None
        assert broker.metrics.endpoint is not None
        async with (
            open_remote(
                broker.bootstrap_servers,
                metrics_url=f"https://127.0.0.1:{broker.metrics.endpoint.port}",
                metrics_token=TOKEN,
                metrics_tls=client_context(),
            ) as source,
            watching(source) as watched,
        ):
            source.focus("connections")
            model = await watched.until(lambda model: len(model.connections) >= 2)
            [row] = [row for row in model.connections.values() if row.client_id is None]
            assert f"closed connection {row.id}" == await source.actions.close_connection(row.id)
            model = await watched.until(lambda model: "LOCAL_CLOSE" in model.close_reasons)
            assert 1 == model.close_reasons["LOCAL_CLOSE"].count


async def test_a_broker_in_this_process_reports_everything() -> None:
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics(["t"])
        with watch_broker(broker) as source:
            async with watching(source) as watched:
                source.focus("tasks")
                model = await watched.until(lambda model: len(model.tasks))
                assert "<init>" == model.tasks[0].name
                source.focus("topics")
                model = await watched.until(
                    lambda model: "t" in model.topics and model.topics["t"].records == 0
                )
                assert {"CreateTopics"} <= set(model.apis)
                with pytest.raises(ActionError, match="already closed"):
                    await source.actions.close_connection("gone")
                assert str(broker.endpoints[0]) == source.name
                assert {} == model.alarms


async def test_a_broker_that_needs_tls_is_asked_from_inside(
    tmp_path: Path,
) -> None:
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(write_pem(tmp_path / "broker.pem", certificate())),
    }
    async with open_broker(settings) as broker:
        with watch_broker(broker) as source:
            async with watching(source) as watched:
                model = await watched.until(lambda model: len(model.figures))

                assert {NO_PLAINTEXT_LISTENER} == {
                    section.missing for section in (model.topics, model.brokers, model.tail)
                }
                assert 0 == model.figures["connections"]
                assert {} == model.alarms
                await initialize(broker, "x")
                source.focus("transactions")
                await watched.until(lambda model: len(model.transactions))
                [row] = model.transactions.values()
                assert ("x", "Empty", 60.0, ()) == (
                    row.id,
                    row.state,
                    row.timeout_seconds,
                    row.partitions,
                )


async def initialize(broker: Broker, id: str) -> None:
    """Have a transactional id without a client."""
    cluster = broker._cluster
    producer_id = await cluster.next_producer_id()
    cluster.transactions.initialize(id, 60_000, NO_IDENTITY, producer_id, lambda _: None)
    await cluster.writes.flush()


ADDRESS = "127.0.0.1:1"


def task_names() -> set[str]:
    """The functions that tasks of this loop are in, by their names with those of their classes."""
    root = trio.lowlevel.current_root_task()
    assert root is not None
    names, left = set(), [root]
    while left:
        task = left.pop()
        left += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
        names.add(task.name)
    return names


async def test_what_is_seldom_looked_at_is_made_when_it_is() -> None:
    """It says at once that it has started: nobody waits for what nobody looks at."""
    keywords: dict[str, object] = {"bootstrap_servers": ADDRESS}
    later = DeferredSource("_record_sources", "TailSource", keywords, ("tail",))
    tail = "trionet.dashboard.sources._record_sources.TailSource.run"
    async with watching(later) as watched:
        later.focus("topics")
        await trio.testing.wait_all_tasks_blocked()
        assert tail not in task_names()
        later.focus("tail", ("t", None))
        await watched.until(lambda model: model.tail_of == ("t", None))
        assert tail in task_names()


async def test_what_is_always_looked_at_starts_with_its_first_look() -> None:
    async with open_broker() as broker:
        servers = broker.bootstrap_servers
        later = DeferredSource("_cluster_source", "ClusterSource", {"bootstrap_servers": servers})
        async with watching(later) as watched:
            model = watched.model

    assert model.topics.updated_at is not None


async def test_a_jafka_broker_is_shown_by_its_metrics_alone() -> None:
    async with (
        open_jafka_broker(metrics_listener="http://127.0.0.1:0") as broker,
        open_jafka_client(broker.address) as client,
    ):
        await client.create("orders", 3)
        await client.produce("orders", [b"one coffee"], 2)
        await client.flush()
        async with (
            open_remote("127.0.0.1:1", metrics_url=broker.metrics_url) as source,
            watching(source) as watched,
        ):
            source.focus("connections")
            model = await watched.until(lambda model: len(model.connections))
            topic = model.topics["orders"]

            assert (3, 20) == (topic.partitions, topic.bytes)
            assert {"ProducerRequest", "MultiFetchRequest", "CreaterRequest"} == set(model.apis)
            assert NOT_KAFKA == model.groups.missing == model.configs.missing
            assert {} == model.alarms


class _Failing:
    """A part that fails once, before or after it has started, and then works."""

    interval_seconds = 1.0

    def __init__(self, *, starts: bool) -> None:
        self._starts = starts
        self._runs = 0

    def focus(self, section: str | None, key: object = None) -> None:
        pass

    async def run(self, model: Model, *, task_status: Started = trio.TASK_STATUS_IGNORED) -> None:
        await trio.lowlevel.checkpoint()
        self._runs += 1
        if self._starts or self._runs > 1:
            task_status.started()
        if self._runs == 1:
            async with trio.open_nursery():
                raise OverflowError("a number that no one has foreseen")
        model.requests_skipped = 7
        model.changed()
        await trio.sleep_forever()


@pytest.mark.parametrize("starts", [False, True], ids=["starting", "running"])
async def test_a_part_that_fails_is_an_alarm_and_runs_again(
    starts: bool, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    source = JoinedSource("here", [_Failing(starts=starts)], Actions("127.0.0.1:9092"))
    async with watching(source) as watched:
        model = await watched.until(lambda model: model.alarms)
        assert "OverflowError" in next(iter(model.alarms.values()))
        await watched.until(lambda model: model.requests_skipped == 7 and not model.alarms)

    [record] = caplog.records
    assert "_Failing" in record.getMessage()


async def test_settings_that_cannot_be_are_the_users_error_and_no_alarm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "none.pem"),
    }
    async with open_remote("127.0.0.1:1", settings) as source:
        with (
            trio.fail_after(60),
            pytest.raises(ConfigError, match=r"cannot read .*none\.pem"),
            raise_single_error(),
        ):
            await source.run(Model())

    assert not caplog.records
