"""What settings mean is said of every key there is, once, and of none that there is not."""

from __future__ import annotations

from trionet.broker.config._broker_config import BROKER_KEYS
from trionet.broker.config._broker_keys import APPLIED, TRIONET_KEYS
from trionet.broker.config._key_meanings import (
    broker_documentation,
    key_meanings,
    topic_documentation,
)
from trionet.broker.config._topic_keys import TOPIC_KEYS


def test_every_key_has_one_meaning() -> None:
    tables = key_meanings()

    assert {*BROKER_KEYS} == {*tables["applied"], *tables["others"]}
    assert set() == {*tables["applied"]} & {*tables["others"]}
    assert {*TOPIC_KEYS} == {*tables["topics"]}


def test_meanings_are_phrases() -> None:
    for table in key_meanings().values():
        for key, meaning in table.items():
            assert meaning == " ".join(meaning.split()), key
            assert 0 < len(meaning) < 200, key
            assert not meaning.endswith("."), key


def test_of_keys_that_are_not_applied_it_is_said() -> None:
    applied = {row[0] for row in (*APPLIED, *TRIONET_KEYS)} | {"min.insync.replicas"}
    for key in BROKER_KEYS:
        documentation = broker_documentation(key)
        assert documentation is not None
        is_applied = not documentation.endswith("; accepted by trionet without being applied")
        assert (key in applied) == is_applied


def test_keys_of_listeners_mean_the_same_for_one_listener() -> None:
    assert broker_documentation("max.connections") == broker_documentation(
        "listener.name.plaintext.max.connections"
    )


def test_unknown_keys_have_no_documentation() -> None:
    assert broker_documentation("custom.key") is None
    assert topic_documentation("custom.key") is None
