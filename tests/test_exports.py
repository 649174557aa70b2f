"""The public surface: what ``trionet`` offers by name, and that offering it costs nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import trionet
from trionet import errors

#: Changing this list is changing the product; docs/reference explains every name in it.
PUBLIC = [
    "Admin",
    "ApiError",
    "AuthenticationError",
    "Broker",
    "BufferExhaustedError",
    "CallTimedOutError",
    "CloseConnection",
    "CommitFailedError",
    "ConfigError",
    "Consumer",
    "ConsumerBatch",
    "ConsumerRecord",
    "CorruptRecordError",
    "DecompressionLimitError",
    "Deliveries",
    "Delivery",
    "DeliveryAbortedError",
    "DeliveryTimeoutError",
    "DisconnectedError",
    "Endpoint",
    "FencedInstanceIdError",
    "FetchTooLargeError",
    "InvalidReceiveError",
    "JafkaBroker",
    "JafkaClient",
    "LocalProtocolError",
    "LogTruncationError",
    "ManualMetadataUpdater",
    "MetadataTimeoutError",
    "NetworkClient",
    "NoOffsetForPartitionError",
    "Node",
    "OffsetAndMetadata",
    "OffsetOutOfRangeError",
    "PartitionError",
    "Producer",
    "ProducerFencedError",
    "RebalanceInProgressError",
    "RecordMetadata",
    "RecordTooLargeError",
    "RecordWithdrawnError",
    "Request",
    "RequestTimedOutError",
    "ResponseTooLargeError",
    "SendBatchError",
    "SocketServer",
    "TopicPartition",
    "Transaction",
    "TransactionAbortableError",
    "TransactionError",
    "TransactionOutcomeUnknownError",
    "TrionetError",
    "UndeliveredError",
    "UnsupportedVersionError",
    "WireFormatError",
    "is_compiled",
    "open_admin",
    "open_broker",
    "open_consumer",
    "open_jafka_broker",
    "open_jafka_client",
    "open_network_client",
    "open_producer",
    "open_reader",
    "process_records",
    "read_topic",
    "serve",
]

#: What a program that only imports trionet must not pay for.
HEAVY = {
    "asyncio",
    "attrs",
    "cramjam",
    "fastcrc",
    "h11",
    "logging",
    "pyarrow",
    "pyspark",
    "pytest",
    "rich",
    "sqlite3",
    "ssl",
    "trio",
}


def modules_after(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after ``statement``."""
    program = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_public_names_are_these() -> None:
    assert sorted(PUBLIC) == sorted(trionet.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_can_be_used(name: str) -> None:
    value = getattr(trionet, name)

    assert value is not None
    assert name in dir(trionet)


def test_the_broker_for_tests_needs_no_import_of_its_own() -> None:
    actual = modules_after("import trionet; trionet.testing.broker")

    assert "trionet" in actual


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'trionet' has no attribute 'open_brokr'"):
        trionet.open_brokr  # type: ignore[attr-defined]  # noqa: B018


def test_every_error_of_trionet_is_public() -> None:
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and value.__module__ == "trionet.errors"
    }

    assert set() == defined - set(PUBLIC)


def test_importing_trionet_loads_nothing_heavy() -> None:
    actual = modules_after("import trionet") - modules_after("pass")

    assert set() == actual & HEAVY


@pytest.mark.skipif(trionet._prefers_source, reason="TRIONET_PURE=1 loads what finds the sources")
@pytest.mark.parametrize("name", ["produce", "fetch", "metadata", "api_versions", "join_group"])
def test_the_codecs_of_an_api_load_nothing_but_struct(name: str) -> None:
    actual = modules_after(f"import trionet.protocol.messages.{name}") - modules_after("pass")

    assert {"trionet"} == actual - {"__future__", "struct", "_struct"}


def test_asking_the_command_for_help_loads_nothing_heavy() -> None:
    ask = (
        "import contextlib, io, trionet.cli.main as cli\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    cli.main(['--help'])"
    )

    actual = modules_after(ask) - modules_after("pass")

    assert set() == actual & (HEAVY - {"asyncio"})


def test_the_pytest_plugin_loads_only_pytest_until_a_broker_is_asked_for() -> None:
    actual = modules_after("import trionet.testing.plugin") - modules_after("import pytest")

    assert set() == actual & HEAVY


def test_a_broker_without_security_does_not_load_what_only_tokens_need() -> None:
    """HTTP alone takes 15 ms and 1 MB of each start."""
    program = """
import sys
import trionet
trionet.open_broker
loaded = {"http.client", "urllib.request", "trionet.net.sasl._jwt"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)
