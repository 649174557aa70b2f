"""A pytest plugin for kafka-python's tests: what they take for Kafka is a broker that runs already.

It runs in the suite's environment. ``TRIONET_PORTS`` has the broker's ports in JSON, by security
protocol, and ``TRIONET_CERTIFICATES`` is the folder with its authority.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suites.inside.given import Given

_HOST = "127.0.0.1"


def _broker(transport: str = "PLAINTEXT", sasl_mechanism: str | None = None, **_: Any) -> Any:
    """The suite's own description of a broker that it has not started."""
    from kafka import KafkaAdminClient

    fixtures = importlib.import_module("test.integration.fixtures")

    port = json.loads(os.environ["TRIONET_PORTS"])[transport]
    broker = fixtures.KafkaFixture.instance(
        0,
        host=_HOST,
        port=port,
        external=True,
        transport=transport,
        sasl_mechanism=sasl_mechanism,
    )

    def get_topic_names() -> list[str]:
        with KafkaAdminClient(**fixtures.client_params(broker)) as admin:
            return list(admin.list_topics())

    broker.get_topic_names = get_topic_names  # the suite's way takes Kafka's command line tools
    if broker.ssl_enabled:
        folder = Path(os.environ["TRIONET_CERTIFICATES"])
        shutil.copy(folder / "ca.crt", folder / "ca-cert")
        broker.ssl_dir = str(folder)
    return broker


GIVEN: dict[str, Callable[[], Any]] = {
    "kafka_broker_factory": lambda: _broker,
    "ssl_kafka": lambda: _broker("SSL"),
}


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Given(GIVEN))
