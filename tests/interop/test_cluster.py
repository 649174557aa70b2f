"""Foreign clients and several nodes: leaders and coordinators come and go, no record does."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable, Iterator

import pytest

from interop.conftest import CLIENTS
from interop.test_groups import READERS
from support.cache import Unavailable
from support.clients.client import Client, Record
from support.durable import OTHER
from trionet.testing import ThreadedBroker
from trionet.testing import broker as trionet_broker

pytestmark = [
    pytest.mark.skipif(bool(OTHER), reason="nodes are stopped and started here"),
    # asyncio leaves sockets of refused connections to the garbage when aiokafka gives them up.
    pytest.mark.filterwarnings(
        r"ignore:(?s).*<socket.*laddr=\('0.0.0.0':pytest.PytestUnraisableExceptionWarning"
    ),
]

# kafkajs notes which node has answered, not for which partition: when leaders move between them, it
# leaves out what has gone to a node that has responded, and numbers anew what it sends again.
SOUND = [name for name in CLIENTS if name != "kafkajs"]
TOPIC = "t"
PARTITIONS = 3
EACH = 100
"""Records of each partition in a round."""
READ_SECONDS = 90.0


@pytest.fixture(params=["memory", "disk"])
def cluster(request: pytest.FixtureRequest, tmp_path: object) -> Iterator[ThreadedBroker]:
    settings = {"log.dirs": str(tmp_path)} if request.param == "disk" else {}
    with trionet_broker(settings, brokers=3, topics={TOPIC: PARTITIONS}) as broker:
        yield broker


@pytest.fixture
def client(cluster: ThreadedBroker, request: pytest.FixtureRequest) -> Iterator[Client]:
    module, class_name = CLIENTS[request.param]
    try:
        made = getattr(importlib.import_module(module), class_name)(cluster.bootstrap_servers)
    except (ImportError, Unavailable) as reason:
        pytest.skip(str(reason))
    with contextlib.closing(made):
        yield made


def next_of(node: int) -> int:
    return node % 3 + 1


def move_leaders(broker: ThreadedBroker) -> None:
    for partition in range(PARTITIONS):
        broker.move_leader(TOPIC, partition, next_of(broker.leader(TOPIC, partition)))


def stop_a_leader(broker: ThreadedBroker) -> None:
    broker.stop(broker.leader(TOPIC, 0))


def start_it_and_stop_two_others(broker: ThreadedBroker) -> None:
    [stopped] = set(broker.node_ids) - set(broker.running_nodes)
    broker.start(stopped)
    for node in set(broker.node_ids) - {stopped}:
        broker.stop(node)


def start_all(broker: ThreadedBroker) -> None:
    for node in broker.node_ids:
        broker.start(node)
    broker.elect_preferred_leaders()


STEPS: list[Callable[[ThreadedBroker], None]] = [
    move_leaders,
    stop_a_leader,
    start_it_and_stop_two_others,
    start_all,
]


@contextlib.contextmanager
def at_the_next(
    broker: ThreadedBroker, api: str, step: Callable[[ThreadedBroker], None]
) -> Iterator[None]:
    """A block in which something happens to the broker as soon as a request of this API comes."""
    failures: list[BaseException] = []
    before = len(broker.requests(api))

    def act() -> None:
        try:
            broker.wait_for_requests(api, before + 1, seconds=READ_SECONDS)
            step(broker)
        except BaseException as error:  # boundary: a thread, whose failure is the test's
            failures.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert not failures, failures


@pytest.mark.parametrize("client", SOUND, indirect=True)
def test_no_record_is_lost_or_there_twice(cluster: ThreadedBroker, client: Client) -> None:
    wanted: dict[int, list[bytes | None]] = {partition: [] for partition in range(PARTITIONS)}
    for number, step in enumerate(STEPS):
        records = client.writable(
            [
                Record(b"k", b"%d0%d" % (number, index), (), None, index % PARTITIONS)
                for index in range(PARTITIONS * EACH)
            ]
        )
        with at_the_next(cluster, "Produce", step):
            client.write(TOPIC, records, codec="none", is_idempotent=True)
        for record in records:
            wanted[record.partition].append(record.value)

    counts = dict.fromkeys(range(PARTITIONS), EACH * len(STEPS))
    with at_the_next(cluster, "Fetch", move_leaders):
        arrived = client.read(TOPIC, counts)

    for partition, values in wanted.items():
        read = [each for each in arrived if each.record.partition == partition]
        assert values == cluster.values(TOPIC, partition)
        assert list(range(len(values))) == [each.offset for each in read]
        assert values == [each.record.value for each in read]


@pytest.mark.parametrize("reader", READERS)
def test_a_group_goes_on_with_its_next_coordinator(cluster: ThreadedBroker, reader: str) -> None:
    values = [b"%d" % number for number in range(300)]
    read: list[bytes] = []
    failures: list[BaseException] = []

    def consume() -> None:
        try:
            read.extend(READERS[reader](cluster.bootstrap_servers, TOPIC, "g", len(values)))
        except BaseException as error:  # boundary: a thread, whose failure is the test's
            failures.append(error)

    thread = threading.Thread(target=consume)
    thread.start()
    cluster.seed(TOPIC, values[:100])
    cluster.wait_for_group("g", members=1, seconds=READ_SECONDS)
    # Whatever it does with a group comes before that; librdkafka does not try all of it again.
    cluster.wait_for_requests("Fetch", seconds=READ_SECONDS)
    cluster.stop(cluster.coordinator("g"))
    cluster.seed(TOPIC, values[100:200])
    start_all(cluster)
    cluster.move_coordinator("g", next_of(cluster.coordinator("g")))
    stop_a_leader(cluster)
    cluster.seed(TOPIC, values[200:])
    thread.join()

    if failures and isinstance(failures[0], pytest.skip.Exception):
        raise failures[0]
    assert not failures, [(each, getattr(each, "stderr", None)) for each in failures]
    assert sorted(values) == sorted(read)
    assert len(values) == sum(cluster.group("g").offsets.values())
