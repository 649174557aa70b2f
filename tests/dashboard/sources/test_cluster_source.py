"""What the Kafka protocol tells of a cluster."""

from __future__ import annotations

import sys
from itertools import pairwise
from operator import attrgetter
from types import FrameType

import pytest
import trio
from trio.testing import MockClock

from support.watching import watching
from trionet import open_admin, open_broker, open_consumer, open_producer
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import NewTopic
from trionet.dashboard.model._model import Model
from trionet.dashboard.sources import _cluster_source, _topic_reader
from trionet.dashboard.sources._cluster_source import ClusterSource
from trionet.dashboard.sources._group_reader import GROUPS_PER_STEP
from trionet.dashboard.sources._topic_reader import PARTITIONS_PER_RESPONSE
from trionet.testing import MemoryNetwork, control


async def test_an_empty_cluster_is_reported_at_once() -> None:
    async with open_broker() as broker:
        async with watching(ClusterSource(broker.bootstrap_servers)) as watched:
            model = watched.model

        assert (1, 0, 0, 0) == tuple(
            model.figures[name] for name in ("brokers", "topics", "partitions", "groups")
        )
        [row] = model.brokers.values()
        assert (broker.endpoints[0].port, True, 0) == (row.port, row.is_controller, row.leads)
        assert (0, None) == (model.topics.total, model.topics.missing)


async def test_topics_are_reported_with_their_records_and_sizes() -> None:
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic("a", 3), NewTopic("b", 1)])
        async with open_producer(broker.bootstrap_servers) as producer:
            for number in range(10):
                await producer.send("a", b"x" * 100, partition=number % 3)
        await admin.delete_records({TopicPartition("a", 0): 2})
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("topics")
            model = await watched.until(
                lambda model: model.topics.get("a", None) and model.topics["a"].bytes
            )

        a, b = model.topics["a"], model.topics["b"]
        assert (3, 1, 0, 0, 8) == attrgetter(
            "partitions", "replicas", "under_replicated", "leaderless", "records"
        )(a)
        assert (1, 0, 0) == (b.partitions, b.records, b.bytes)
        assert a.bytes == broker.statistics().log_bytes
        first = model.partitions["a", 0]
        assert (2, 4, 1) == (first.start_offset, first.end_offset, first.leader)


async def test_how_fast_a_topic_grows_is_shown() -> None:
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics(["t"])
        source = ClusterSource(broker.bootstrap_servers)
        async with (
            open_producer(broker.bootstrap_servers) as producer,
            watching(source) as watched,
        ):
            source.focus("topics")
            await watched.until(lambda model: model.topics["t"].rate == 0)
            await producer.send("t", b"x")
            model = await watched.until(lambda model: model.topics["t"].rate)

            assert 1 == model.topics["t"].records
            assert 0 < (model.topics["t"].rate or 0) < 100


async def test_the_partitions_of_one_topic_are_those_that_are_looked_at() -> None:
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic("a", 3), NewTopic("b", 2)])
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("partitions", "a")
            model = await watched.until(
                lambda model: (
                    {topic for topic, _ in model.partitions} == {"a"}
                    and all(row.end_offset == 0 for row in model.partitions.values())
                )
            )
            assert {("a", 0), ("a", 1), ("a", 2)} == set(model.partitions)
            source.focus("topics")
            await watched.until(lambda model: len(model.partitions) == 5)


async def test_topics_that_come_and_go_are_reported() -> None:
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics(["a"])
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("topics")
            await watched.until(lambda model: list(model.topics) == ["a"])
            await admin.create_topics(["b"])
            await watched.until(lambda model: set(model.topics) == {"a", "b"})
            await admin.delete_topics(["a"])
            model = await watched.until(lambda model: set(model.topics) == {"b"})

        assert {"b"} == {topic for topic, _ in model.partitions}


async def test_groups_are_reported_with_their_members_and_lag() -> None:
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic("t", 2)])
        async with open_producer(broker.bootstrap_servers) as producer:
            for number in range(10):
                await producer.send("t", b"x", partition=number % 2)
        source = ClusterSource(broker.bootstrap_servers)
        async with (
            open_consumer(
                broker.bootstrap_servers,
                group_id="g",
                topics="t",
                client_id="reader",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            ) as consumer,
            watching(source) as watched,
        ):
            await consumer.next_batch()
            await consumer.commit({TopicPartition("t", 0): 3})
            source.focus("groups")
            model = await watched.until(lambda m: "g" in m.groups and m.groups["g"].lag is not None)
            row = model.groups["g"]
            source.focus("group", "g")

            assert ("classic", "Stable", "consumer", 1, 2) == attrgetter(
                "type", "state", "protocol_type", "members", "lag"
            )(row)
            assert row.detail is not None
            [member] = row.detail
            assert ("reader", (("t", 0), ("t", 1))) == (member.client_id, member.assignment)
            assert row.lags is not None
            assert [(0, 3, 5, 2, member.id), (1, None, 5, None, member.id)] == [
                (each.partition, each.committed, each.end, each.lag, each.member)
                for each in row.lags
            ]
            assert 2 == model.figures["lag"]


async def test_settings_are_shown_of_what_is_looked_at() -> None:
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic("t", configs={"retention.ms": 1000})])
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("configs", ("topic", "t"))
            model = await watched.until(lambda model: "retention.ms" in model.configs)
            assert ("1000", False) == attrgetter("value", "is_default")(
                model.configs["retention.ms"]
            )
            assert model.configs["cleanup.policy"].is_default
            source.focus("configs", ("broker", "1"))
            model = await watched.until(lambda model: "node.id" in model.configs)
            assert "1" == model.configs["node.id"].value


async def test_that_settings_could_not_be_read_is_no_alarm_where_others_are_looked_at() -> None:
    alarms: set[str] = set()

    def are_told(model: Model) -> bool:
        alarms.update(model.alarms)
        return model.configs_of == ("topic", "t") and "retention.ms" in model.configs

    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics(["t"])
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            with control(broker).faults.hold("DescribeConfigs") as held:
                source.focus("configs", ("topic", "nowhere"))
                while not held.hits:
                    await trio.lowlevel.checkpoint()
                source.focus("configs", ("topic", "t"))
            await watched.until(are_told)

    assert set() == alarms


async def test_what_a_broker_does_not_serve_is_said() -> None:
    async with open_broker() as broker:
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("quotas")
            model = await watched.until(lambda model: model.client_quotas_missing)

        assert "DescribeClientQuotas" in f"{model.client_quotas_missing}"
        assert model.client_quotas_missing == model.quotas.missing


async def test_a_cluster_that_is_gone_is_an_alarm_and_comes_back() -> None:
    async with open_broker(listeners="PLAINTEXT://127.0.0.1:0") as broker:
        address = broker.bootstrap_servers
        settings = {"default.api.timeout.ms": 300, "request.timeout.ms": 200}
        source = ClusterSource(address, settings)
        async with watching(source) as watched:
            source.focus("topics")
            await broker.stop(1)
            model = await watched.until(lambda model: "topics" in model.alarms)
            assert "topics" in model.failing
            assert "topics" in model.figures.reported()
            assert "topics" not in model.figures
            await broker.start(1)
            model = await watched.until(lambda model: not model.alarms)

        assert None is model.topics.failure
        assert {} == model.failing
        assert "topics" in model.figures


async def test_that_a_cluster_is_gone_is_seen_where_nothing_of_it_is_shown() -> None:
    async with open_broker(listeners="PLAINTEXT://127.0.0.1:0") as broker:
        settings = {"default.api.timeout.ms": 300, "request.timeout.ms": 200}
        source = ClusterSource(broker.bootstrap_servers, settings)
        async with watching(source) as watched:
            source.focus("connections")
            await broker.stop(1)
            model = await watched.until(lambda model: model.alarms)

    assert "cluster" in model.failing


async def test_how_fast_topics_grow_is_recorded_while_it_is_not_shown() -> None:
    async with (
        open_broker() as broker,
        open_admin(broker.bootstrap_servers) as admin,
        open_producer(broker.bootstrap_servers) as producer,
    ):
        await admin.create_topics(["t"])
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("groups")
            await watched.until(lambda model: model.topics["t"].rate == 0)
            await producer.send("t", b"one")
            model = await watched.until(lambda model: model.topics["t"].rate)

        history = model.topics["t"].history
        assert history is not None
        assert (history.last or 0) > 0


async def test_the_overview_of_brokers_without_internals_has_rates_and_lag_of_each_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also of a cluster of which they are not recorded while they are not shown."""
    monkeypatch.setattr(_topic_reader, "RECORDED_PARTITIONS_MAX", 0)
    monkeypatch.setattr(_cluster_source, "SUMMED_GROUPS_MAX", 0)
    monkeypatch.setattr(_cluster_source, "RARELY", 10**9)
    monkeypatch.setattr(_cluster_source, "RARELY_SECONDS", 10.0**9)
    async with (
        open_broker() as broker,
        open_admin(broker.bootstrap_servers) as admin,
        open_producer(broker.bootstrap_servers) as producer,
    ):
        await admin.create_topics(["t"])
        await admin.alter_group_offsets("g", {TopicPartition("t", 0): 0})
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("overview")
            await watched.until(lambda model: model.figures.get("records") == 0)
            await producer.send("t", b"x")
            await watched.until(lambda model: model.figures.get("records"))
            await watched.until(lambda model: model.figures.get("lag") == 1)
            source.focus("connections")
            await watched.until(lambda model: "records" not in model.figures)


async def test_a_read_for_the_overview_ends_once_a_brokers_inside_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The snapshot of a broker with many topics may arrive later than the list of its topics."""
    monkeypatch.setattr(_topic_reader, "RECORDED_PARTITIONS_MAX", 0)
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics(["t"])
        controls = control(broker)
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            with controls.faults.hold("ListOffsets") as held:
                source.focus("overview")
                while not held.hits:
                    await trio.lowlevel.checkpoint()
                monkeypatch.setattr(watched.model, "_network_figures", ["requests"])
            await trio.sleep(0.3)

        assert watched.model.has_internals
        assert 1 == len(controls.requests("ListOffsets"))


async def test_of_many_partitions_how_fast_they_grow_is_only_known_while_it_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_topic_reader, "RECORDED_PARTITIONS_MAX", 0)
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics(["t"])
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("topics")
            await watched.until(lambda model: model.topics["t"].rate == 0)
            assert None is not watched.model.topics.as_of
            source.focus("groups")
            model = await watched.until(lambda model: model.topics["t"].rate is None)

        assert None is model.partitions["t", 0].rate
        assert (0, 0) == (model.topics["t"].records, model.partitions["t", 0].end_offset)


async def test_the_settings_of_what_is_gone_are_an_alarm_as_long_as_they_are_looked_at() -> None:
    async with open_broker() as broker:
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("configs", ("topic", "nowhere"))
            await watched.until(lambda model: "configs" in model.alarms)
            source.focus("topics")
            await watched.until(lambda model: not model.alarms)


async def test_a_group_without_a_commit_has_no_known_lag_and_does_not_hide_that_of_others() -> None:
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics(["t"])
        async with open_producer(broker.bootstrap_servers) as producer:
            await producer.send("t", b"x")
        await admin.alter_group_offsets("old", {TopicPartition("t", 0): 0})
        source = ClusterSource(broker.bootstrap_servers)
        async with (
            open_consumer(
                broker.bootstrap_servers,
                group_id="new",
                topics="t",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            ) as consumer,
            watching(source) as watched,
        ):
            await consumer.next_batch()
            source.focus("groups")
            model = await watched.until(
                lambda model: "new" in model.groups and model.groups["new"].lags is not None
            )
            await watched.until(lambda model: model.figures.get("lag") is not None)

            assert (None, 1) == (model.groups["new"].lag, model.groups["old"].lag)
            assert 1 == model.figures["lag"]


async def test_a_lag_stays_known_if_another_view_is_shown_while_it_is_read() -> None:
    """The rest of the read is given up, and must not count as offsets that cannot be read."""
    lags: set[int | None] = set()

    def is_read_again(model: Model) -> bool:
        lags.add(model.groups["g"].lag)
        return model.groups["g"].lag == 1

    async with (
        open_broker() as broker,
        open_admin(broker.bootstrap_servers) as admin,
        open_producer(broker.bootstrap_servers) as producer,
    ):
        await admin.create_topics(["t"])
        await admin.alter_group_offsets("g", {TopicPartition("t", 0): 0})
        source = ClusterSource(broker.bootstrap_servers)
        async with watching(source) as watched:
            source.focus("group", "g")
            await watched.until(lambda m: "g" in m.groups and m.groups["g"].lag is not None)
            with control(broker).faults.hold("OffsetFetch") as held:
                while not held.hits:
                    await trio.lowlevel.checkpoint()
                source.focus("topics")
            await producer.send("t", b"x")
            await watched.until(is_read_again)

    assert {0, 1} == lags


async def test_the_lag_of_all_groups_is_reported_whatever_is_shown_unless_they_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics(["t"])
        for group in ("a", "b"):
            await admin.alter_group_offsets(group, {TopicPartition("t", 0): 0})
        source = ClusterSource(broker.bootstrap_servers)
        async with (
            watching(source) as watched,
            open_producer(broker.bootstrap_servers) as producer,
        ):
            await watched.until(lambda model: model.figures.get("lag") == 0)
            await producer.send("t", b"x")
            await watched.until(lambda model: model.figures.get("lag") == 2)
            source.focus("connections")
            await producer.send("t", b"y")
            model = await watched.until(lambda model: model.figures.get("lag") == 4)
            assert 2 == model.groups["a"].lag
            monkeypatch.setattr(_cluster_source, "SUMMED_GROUPS_MAX", 0)
            await watched.until(lambda model: "lag" not in model.figures)


@pytest.mark.slow
async def test_a_large_cluster_is_read_in_slices() -> None:
    """Each is shown when it is there, and others have their turn on the loop in between."""
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic("large", 1000), NewTopic("small", 1)])
        model, sizes = Model(), [0]
        source = ClusterSource(broker.bootstrap_servers)
        async with trio.open_nursery() as nursery:
            model.changed = lambda: sizes.append(len(model.partitions))
            await nursery.start(source.run, model)
            nursery.cancel_scope.cancel()

    assert (1000, 1) == (model.topics["large"].partitions, model.topics["small"].partitions)
    assert 1001 == sizes[-1]
    assert all(b - a <= PARTITIONS_PER_RESPONSE for a, b in pairwise(sizes))


class Steps(trio.abc.Instrument):
    """Counts the calls that each step of a task of the dashboard makes: what everybody waits for.

    Attributes:
        most: of one step.
    """

    def __init__(self) -> None:
        self.most = 0
        self._calls = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task.name.startswith("trionet.dashboard"):
            self._calls = 0
            sys.setprofile(self._count)

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task.name.startswith("trionet.dashboard"):
            sys.setprofile(None)
            self.most = max(self.most, self._calls)

    def _count(self, frame: FrameType, event: str, arg: object) -> None:
        self._calls += event.endswith("call")


#: What a slice of partitions takes, with a fifth more. A list of all of them takes many times that.
CALLS_PER_STEP_MAX = 6_000


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize("view", ["topics", "groups"])
async def test_no_step_of_reading_a_large_cluster_holds_others_up(
    autojump_clock: MockClock,
    view: str,
) -> None:
    """A key gets a response between two steps, however many partitions and groups there are."""
    steps, model, network = Steps(), Model(), MemoryNetwork()
    async with (
        open_broker(network=network) as broker,
        open_admin(broker.bootstrap_servers, network=network) as admin,
    ):
        await admin.create_topics([NewTopic(f"t{number}", 25) for number in range(40)])
        for number in range(3 * GROUPS_PER_STEP):
            await admin.alter_group_offsets(f"g{number}", {TopicPartition("t0", 0): 0})
        source = ClusterSource(broker.bootstrap_servers, network=network)
        source.focus(view)
        counts: list[int] = [0]
        trio.lowlevel.add_instrument(steps)
        async with trio.open_nursery() as nursery:
            model.changed = lambda: counts.append(len(model.groups))
            await nursery.start(source.run, model)
            nursery.cancel_scope.cancel()
        trio.lowlevel.remove_instrument(steps)

    assert (1000, 3 * GROUPS_PER_STEP) == (len(model.partitions), len(model.groups))
    assert all(b - a <= GROUPS_PER_STEP for a, b in pairwise(counts))
    assert steps.most <= CALLS_PER_STEP_MAX
