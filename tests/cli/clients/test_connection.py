"""Where a command connects, and with which settings: files, environment, options."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from support.command_runs import Run
from trionet.cli.clients._connection import (
    Setting,
    add_connection_arguments,
    client_id,
    client_settings,
    resolve_settings,
    with_ports,
)
from trionet.client.config._keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS, ClientKeys
from trionet.errors import ConfigError
from trionet.testing import broker


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="trionet test")
    parser.set_defaults(prog=parser.prog)
    add_connection_arguments(parser)
    return parser.parse_args(words)


def given(
    *words: str, environment: dict[str, str] | None = None, keys: ClientKeys = ADMIN_KEYS
) -> dict[str, Setting]:
    return resolve_settings(parsed(*words), keys, environment or {})


def test_without_anything_a_broker_on_this_machine_is_meant() -> None:
    assert ("bootstrap.servers", "127.0.0.1:9092", "default") == given()["bootstrap.servers"]


@pytest.mark.parametrize(
    ("prog", "id"),
    [
        ("trionet consume", "trionet-consume"),
        ("trionet topics list", "trionet-topics"),
        ("trionet configs users list", "trionet-configs"),
    ],
)
def test_the_client_id_names_the_command(prog: str, id: str) -> None:
    assert id == client_id(prog)


@pytest.mark.slow
def test_brokers_see_which_command_it_is(run: Run) -> None:
    with broker(topics=["t"]) as running:
        at = ["-b", running.bootstrap_servers]
        run("produce", "t", *at, stdin="a\n")
        run("consume", "t", "-e", *at)
        run("consume", "^t", "-e", *at)
        run("topics", "list", *at)
        run("bench", "consume", "t", *at)
        run("topics", "list", *at, "-X", "client.id=mine")

        assert {
            "trionet-produce",
            "trionet-consume",
            "trionet-topics",
            "trionet-bench",
            "mine",
        } == {each.client_id for each in running.requests()}


def test_the_file_is_the_weakest_and_an_option_the_strongest(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=file\nretries=1\nbootstrap.servers=file:1\n")
    environment = {"TRIONET_CLIENT_ID": "environment", "TRIONET_BOOTSTRAP_SERVERS": "env:1"}

    found = given("-F", str(file), environment=environment)
    all_of_them = given("-F", str(file), "-X", "client.id=option", environment=environment)

    assert Setting("retries", "1", str(file)) == found["retries"]
    assert Setting("client.id", "environment", "TRIONET_CLIENT_ID") == found["client.id"]
    assert "env:1" == found["bootstrap.servers"].value
    assert Setting("client.id", "option", "-X") == all_of_them["client.id"]


def test_brokers_win_over_everything() -> None:
    found = given("-X", "bootstrap.servers=x:1", "--brokers", "y:2")

    assert "y:2" == found["bootstrap.servers"].value


def test_the_environment_names_a_file_for_who_always_means_the_same(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=shop\n")

    assert "shop" == given(environment={"TRIONET_CONFIG": str(file)})["client.id"].value


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("a", "a:9092"),
        ("a:1,b", "a:1,b:9092"),
        ("[::1]", "[::1]:9092"),
        ("[::1]:1", "[::1]:1"),
        ("10.0.0.1 , b:2", "10.0.0.1:9092,b:2"),
    ],
)
def test_the_usual_port_may_be_left_out(text: str, servers: str) -> None:
    assert servers == with_ports(text)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("sasl.mechanisms=PLAIN", "sasl.mechanism", "PLAIN"),
        ("metadata.broker.list=a:1", "bootstrap.servers", "a:1"),
        ("socket.timeout.ms=5", "request.timeout.ms", "5"),
        (
            "ssl.endpoint.identification.algorithm=none",
            "ssl.endpoint.identification.algorithm",
            "",
        ),
        ("security.protocol=sasl_ssl", "security.protocol", "sasl_ssl"),
    ],
)
def test_what_is_written_as_librdkafka_has_it_is_understood(
    text: str, key: str, value: str
) -> None:
    assert value == given("-X", text)[key].value


def test_keys_of_producers_and_consumers_are_librdkafkas_too() -> None:
    produced = given("-X", "queue.buffering.max.ms=7", keys=PRODUCER_KEYS)
    consumed = given("-X", "auto.offset.reset=smallest", keys=CONSUMER_KEYS)

    assert "7" == produced["linger.ms"].value
    assert "earliest" == consumed["auto.offset.reset"].value


def test_a_key_that_counts_something_else_is_not_taken_for_kafkas() -> None:
    with pytest.raises(ConfigError, match=r"-X: batch\.num\.messages is librdkafka's name"):
        given("-X", "batch.num.messages=1000", keys=PRODUCER_KEYS)


def test_a_file_may_be_for_all_clients_and_for_librdkafka(tmp_path: Path) -> None:
    file = tmp_path / "kcat.conf"
    file.write_text("acks=1\ngroup.id=g\napi.version.request=true\nclient.id=x\n")

    assert {"client.id", "bootstrap.servers"} == given("-F", str(file)).keys()
    assert "acks" in given("-F", str(file), keys=PRODUCER_KEYS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-X", "acks=1"], r"-X: acks is a setting of producers, not of admin clients"),
        (["-X", "retriess=1"], r"-X: retriess: unknown key; the closest match is retries"),
        (["-X", "retries=x"], r"-X: retries = 'x' is not allowed; allowed: an integer"),
        (["-X", "retries"], r"-X retries: must have the form KEY=VALUE"),
        (["-X", "=1"], r"-X =1: must have the form KEY=VALUE"),
        (["-F", "/nowhere/at/all"], r"cannot read /nowhere/at/all: No such file"),
        (["-X", "enable.ssl.certificate.verification=false"], r"-X: enable\.ssl\.certificate"),
    ],
)
def test_what_is_wrong_says_where_it_was_given(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        given(*words)


def test_a_wrong_secret_is_not_quoted() -> None:
    with pytest.raises(ConfigError) as raised:
        given("-X", "sasl.login.refresh.buffer.seconds=secret", "-X", "sasl.password=secret")

    assert "sasl.login" in str(raised.value)
    assert "sasl.password" not in str(raised.value)


def test_variables_of_other_programs_are_reported_and_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = given(environment={"TRIONET_SASL_PASWORD": "x", "TRIONET_PURE": "1", "HOME": "/"})

    assert {"bootstrap.servers", "client.id"} == found.keys()
    [record] = caplog.records
    assert "ignoring TRIONET_SASL_PASWORD" in record.getMessage()
    assert "sasl.password" in record.getMessage()


def test_a_wrong_value_of_a_variable_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"TRIONET_RETRIES: retries = 'x'"):
        given(environment={"TRIONET_RETRIES": "x"})


def test_controllers_stand_in_place_of_brokers() -> None:
    found = given("-X", "bootstrap.controllers=c:1")

    assert {"bootstrap.controllers", "client.id"} == found.keys()


def test_the_settings_are_texts_by_kafkas_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIONET_SASL_USERNAME", "alice")

    found = client_settings(parsed("-b", "a:1", "-X", "sasl.mechanism=PLAIN"))

    assert {
        "sasl.username": "alice",
        "sasl.mechanism": "PLAIN",
        "bootstrap.servers": "a:1",
        "client.id": "trionet-test",
    } == found
