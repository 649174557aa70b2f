"""docs/howto/run-a-broker.md names every setting that is applied, with the default that it has."""

from __future__ import annotations

import re
from pathlib import Path

from trionet.broker.config._broker_keys import APPLIED, TRIONET_KEYS
from trionet.broker.config._dynamic_config import DYNAMIC, PER_BROKER
from trionet.broker.config._topic_keys import TOPIC_KEYS
from trionet.broker.log import LogConfig
from trionet.protocol._config_types import value_text

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "run-a-broker.md"
ROW = re.compile(
    r"^\| `(?P<key>[a-z0-9.]+)` \| (?:`(?P<default>[^`]*)` )?\| \S.* \|$", re.MULTILINE
)


def section(title: str) -> str:
    """What stands between a heading and the next one."""
    _, _, rest = PAGE.read_text("utf-8").partition(f"# {title}\n")
    return rest.partition("\n#")[0]


def test_the_table_is_that_of_the_code() -> None:
    listed = {
        found["key"]: found["default"]
        for found in ROW.finditer(section("The settings that are applied"))
    }

    expected = {key: value_text(default) for key, _, default, _ in (*APPLIED, *TRIONET_KEYS)}

    assert expected == listed


def test_the_settings_of_a_topic_that_are_applied_are_named() -> None:
    applied = {
        field
        for name in TOPIC_KEYS
        if (field := name.replace(".", "_")) in LogConfig.__annotations__
    }
    paragraph = section("The settings that are applied").partition("A topic has settings")[2]

    named = {name.replace(".", "_") for name in re.findall(r"`([a-z]+\.[a-z0-9.]+)`", paragraph)}

    assert applied == named


def test_the_table_of_what_can_be_altered_is_that_of_the_code() -> None:
    applied = {row[0] for row in APPLIED} | {"min.insync.replicas"}  # of several nodes
    rows = re.findall(
        r"^\| (.*?) \|", section("Settings that change while the broker runs"), re.MULTILINE
    )

    named = {
        key
        for row in rows
        if "listener.name." not in row
        for key in re.findall(r"`([a-z0-9.]+)`", row)
    }

    assert (DYNAMIC & applied) - PER_BROKER == named
