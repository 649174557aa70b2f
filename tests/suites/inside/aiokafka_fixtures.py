"""A pytest plugin for aiokafka's tests: what they take for a container is a broker that runs.

It runs in the suite's environment. ``TRIONET_PORTS`` has the broker's ports in JSON, by security
protocol, and ``TRIONET_CERTIFICATES`` is the folder with the certificates.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suites.inside.given import Given

_HOST = "127.0.0.1"


class Acls:
    """None are there, and those that add some are left out."""

    def list_acl(self) -> bytes:
        return b""

    def cleanup(self) -> None:
        pass


class Users:
    """They may log in since before the broker started."""

    def add_scram_user(self, username: str, password: str) -> None:
        assert username == password == "test"


def _server() -> SimpleNamespace:
    ports = json.loads(os.environ["TRIONET_PORTS"])
    return SimpleNamespace(
        host=_HOST,
        port=ports["PLAINTEXT"],
        ssl_port=ports["SSL"],
        sasl_plain_port=ports["SASL_PLAINTEXT"],
        sasl_ssl_port=ports["SASL_SSL"],
        hosts=[f"{_HOST}:{ports['PLAINTEXT']}"],
    )


GIVEN: dict[str, Callable[[], Any]] = {
    "docker": lambda: None,
    "kafka_image": lambda: None,
    "kafka_server": _server,
    "ssl_folder": lambda: Path(os.environ["TRIONET_CERTIFICATES"]),
    "acl_manager": Acls,
    "kafka_config": Users,
    "kerberos_utils": lambda: None,
}


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Given(GIVEN))
