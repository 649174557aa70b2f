"""Foreign clients against a broker: trionet's own, or another that `TRIONET_TEST_BOOTSTRAP` names.

The variable is a bootstrap server, or the word `kafka` or `kfake`, which starts one of these: that
is how the tests themselves are tested.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.administered_kafka import Kafka, administered_kafka
from support.cache import Unavailable
from support.clients.client import Admin, Client
from support.clients.exchange import Exchange
from support.durable import OTHER, Durable, durable_broker
from support.kafka_node import kafka_node
from support.kfake import kfake
from support.secured.broker import SecuredBroker, secured_broker
from support.secured.client import SecuredClient, without_leftovers
from trionet.testing import broker as trionet_broker

# Module and class of each client: a client whose package is missing is skipped, not an error.
CLIENTS = {
    "kcat": ("support.clients.kcat", "Kcat"),
    "confluent-kafka": ("support.clients.confluent", "Confluent"),
    "kafka-python": ("support.clients.kafka_python", "KafkaPython"),
    "aiokafka": ("support.clients.aio", "Aiokafka"),
    "java": ("support.clients.java", "Java"),
    "kafkajs": ("support.clients.kafkajs", "KafkaJs"),
    "trionet": ("support.clients.by_hand", "ByHand"),
}
# The same, for those that talk to secured listeners.
SECURED_CLIENTS = {
    "kcat": ("support.secured.kcat", "Kcat"),
    "confluent-kafka": ("support.secured.confluent", "Confluent"),
    "kafka-python": ("support.secured.kafka_python", "KafkaPython"),
    "aiokafka": ("support.secured.aio", "Aiokafka"),
    "java": ("support.secured.java", "Java"),
}
# Too long for every change: only where foreign clients are asked for.
LONG = (
    "test_admin.py",
    "test_admin_cluster.py",
    "test_admin_controllers.py",
    "test_admin_groups.py",
    "test_churn.py",
    "test_cli_pipes.py",
    "test_cli_records.py",
    "test_cli_admin.py",
    "test_client_security.py",
    "test_client_telemetry.py",
    "test_cluster.py",
    "test_compaction.py",
    "test_dashboard.py",
    "test_first_batches.py",
    "test_java_configs.py",
    "test_java_topic_tools.py",
    "test_kafka_cluster.py",
    "test_kafka_setting_verdicts.py",
    "test_kafka_transaction_rules.py",
    "test_kafkajs.py",
    "test_leaving.py",
    "test_producer.py",
    "test_records_matrix.py",
    "test_mixed_groups.py",
    "test_old_java.py",
    "test_old_kafka_python.py",
    "test_security_matrix.py",
    "test_transaction_rules_long.py",
    "test_transactions.py",
    "test_transactions_java.py",
    "test_streams.py",
)
# What kfake does otherwise than Kafka, by a part of the test's name.
KFAKE_LACKS = {
    "log_append_time": "kfake keeps the writer's timestamps",
    "administers_topics": "kfake's topic configs are incomplete",
    "test_refusals": "kfake takes any topic configuration",
    "test_java_tools": "kfake's DescribeTopicPartitions and DescribeConfigs break Kafka's tools",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Everything here is `interop`, and may have to wait for a download the first time."""
    if "interop" not in config.getoption("markexpr"):
        dropped = [item for item in items if item.path.name in LONG]
        if dropped:
            config.hook.pytest_deselected(items=dropped)
            items[:] = [item for item in items if item not in dropped]
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.interop)
            item.add_marker(pytest.mark.timeout(600))
            # kafka-python reads its schemas in a way that Python 3.11 warns of.
            item.add_marker(
                pytest.mark.filterwarnings("ignore:(read|open)_text is:DeprecationWarning")
            )
            # A foreign client leaves a socket to the garbage collection now and then.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            for part, reason in KFAKE_LACKS.items():
                if OTHER == "kfake" and part in item.nodeid:
                    item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="module", autouse=True)
def _no_leftovers_for_others() -> Iterator[None]:
    """What foreign clients have left open is collected here, not in a test of something else."""
    with without_leftovers():
        yield


@contextlib.contextmanager
def _skipping() -> Iterator[None]:
    try:
        yield
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    """One node of Apache Kafka, for the tests of a module that administer it."""
    with _skipping(), administered_kafka() as node:
        yield node


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """The broker that all tests of a run share."""
    with contextlib.ExitStack() as stack, _skipping():
        if OTHER == "kafka":
            yield stack.enter_context(kafka_node())[0]
        elif OTHER == "kfake":
            yield stack.enter_context(kfake())[0]
        elif OTHER:
            yield OTHER
        else:
            yield stack.enter_context(trionet_broker()).bootstrap_servers


@pytest.fixture(scope="session")
def clients(bootstrap: str) -> Iterator[Callable[[str], Client]]:
    """Foreign clients by name, each made when it is first asked for; skips without its package."""
    made: dict[str, Client] = {}

    def client(name: str) -> Client:
        if name not in made:
            module, class_name = CLIENTS[name]
            try:
                with _skipping():
                    made[name] = getattr(importlib.import_module(module), class_name)(bootstrap)
            except ImportError as error:
                pytest.skip(f"{name} is not installed: {error}")
        return made[name]

    yield client
    for each in made.values():
        each.close()


@pytest.fixture(scope="session")
def new_topic(clients: Callable[[str], Client]) -> Callable[..., str]:
    """Makes a topic and gives its name, which no other test has."""
    numbers = itertools.count()

    def make(partitions: int = 1, /, **config: str) -> str:
        name = f"interop-{os.getpid()}-{next(numbers)}"
        admin = clients("confluent-kafka")
        assert isinstance(admin, Admin)
        admin.create_topic(name, partitions, config)
        return name

    return make


@pytest.fixture(scope="session")
def exchange(clients: Callable[[str], Client], new_topic: Callable[..., str]) -> Exchange:
    return Exchange(clients, new_topic)


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[Durable]:
    """`with durable.running(): …`, as often as you like, always the same port and data."""
    with _skipping(), durable_broker(tmp_path) as broker:
        yield broker


@pytest.fixture(scope="module")
def durable_for_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Durable]:
    """The same, shared by the tests of one file."""
    with _skipping(), durable_broker(tmp_path_factory.mktemp("durable")) as broker:
        yield broker


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker with every kind of secured listener."""
    if OTHER:
        pytest.skip("the listeners are set up for trionet")
    with secured_broker(tmp_path_factory.mktemp("secured")) as broker:
        yield broker


@pytest.fixture(scope="session")
def secured_client(secured: SecuredBroker) -> Iterator[Callable[[str], SecuredClient]]:
    """As `clients`. The first exchange of each is done: what it has to load is loaded then."""
    made: dict[str, SecuredClient] = {}

    def client(name: str) -> SecuredClient:
        if name not in made:
            module, class_name = SECURED_CLIENTS[name]
            try:
                with _skipping():
                    make = getattr(importlib.import_module(module), class_name)
                    found = make(*secured.token_files) if name == "java" else make()
            except ImportError as error:
                pytest.skip(f"{name} is not installed: {error}")
            made[name] = found
            found.exchange(secured.ssl(), f"first-of-{name}", b"first")
        return made[name]

    yield client
    for each in made.values():
        each.close()


@pytest.fixture(scope="session")
def new_name() -> Callable[[], str]:
    """Gives names that no topic has yet."""
    numbers = itertools.count()
    return lambda: f"secured-{next(numbers)}"
