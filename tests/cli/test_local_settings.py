"""`trionet config`: settings before anything is started with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.command_runs import Run
from trionet.broker.config._key_meanings import key_meanings as broker_meanings
from trionet.cli._local_settings import APPLIED, KINDS, key_meanings, keys_of
from trionet.client.consumer._settings import consumer_settings
from trionet.errors import ConfigError

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROW = re.compile(
    r"^\| `(?P<key>[a-z0-9.]+)` \| (?:`[^`]*` )?\| (?P<meaning>\S.*) \|$", re.MULTILINE
)


def meanings(page: str, *titles: str) -> dict[str, str]:
    """What a page says of keys, without its marks; of a key in two tables the first."""
    found: dict[str, str] = {}
    for title in titles:
        section = (DOCS / page).read_text("utf-8").partition(f"# {title}\n")[2].partition("\n#")[0]
        assert section, title
        for row in ROW.finditer(section):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", row["meaning"]).replace("`", "")
            if text != "as above":
                found.setdefault(row["key"], text)
    return found


def test_the_meanings_are_those_of_the_pages() -> None:
    clients = ("All clients", "Security", "Producers", "Consumers", "Admin clients")

    assert key_meanings()["client"] == meanings("reference/client-settings.md", *clients)
    assert broker_meanings()["applied"] == meanings(
        "howto/run-a-broker.md", "The settings that are applied"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_that_is_applied_has_a_meaning(kind: str) -> None:
    assert [] == [
        name for name, key in keys_of(kind).items() if key.use == APPLIED and not key.meaning
    ]


def test_keys_are_listed_with_default_and_meaning(run: Run) -> None:
    some = run("config", "keys", "producer", "^linger", "--json")
    everything = run("config", "keys", "broker", "-a", "--json")
    none = run("config", "keys", "consumer", "nothing.like.it")

    assert [
        {
            "name": "linger.ms",
            "default": "5",
            "type": "LONG",
            "meaning": "how long a batch that is not full waits for more records",
        }
    ] == some.json
    assert {"applied", "without meaning", "not applied"} == {
        each["use"] for each in everything.json
    }
    assert 1 == none.status


def test_what_was_given_is_shown_with_its_origin(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("acks=1\nsasl.password=secret\nfetch.min.bytes=5\n")
    monkeypatch.setenv("TRIONET_CLIENT_ID", "shop")

    done = run(
        "config", "show", "producer", "--given", "-F", str(file), "-X", "linger.ms=7", "--json"
    )
    everything = run("config", "show", "producer", "-F", str(file), "--json").json

    assert [
        ("acks", "1", str(file)),
        ("bootstrap.servers", "127.0.0.1:9092", "default"),
        ("client.id", "shop", "TRIONET_CLIENT_ID"),
        ("linger.ms", "7", "-X"),
        ("sasl.password", "[hidden]", str(file)),
    ] == [tuple(row.values()) for row in done.json]
    assert {"key": "linger.ms", "value": "5", "origin": "default"} in everything


def test_a_brokers_settings_are_shown(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nlisteners=PLAINTEXT://127.0.0.1:1\n")

    done = run(
        "config", "show", "broker", "-g", "-F", str(file), "-X", "num.io.threads=4", "--json"
    )

    assert [
        ("listeners", "PLAINTEXT://127.0.0.1:1", str(file)),
        ("num.io.threads", "4", "-X"),
        ("num.partitions", "3", str(file)),
    ] == [tuple(row.values()) for row in done.json]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acks=1\nfetch.min.bytes=5\nclient.id=x\n", []),
        ("sasl.mechanism=PLAIN\nsasl.username=a\nsasl.password=b\n", []),
        ("sasl.mechanisms=PLAIN\nsasl.username=a\n", [("error", "sasl.mechanisms")]),
        ("metadata.broker.list=h:1\n", [("error", "metadata.broker.list")]),
        ("fetch.wait.max.ms=5\n", [("error", "fetch.wait.max.ms")]),
        ("auto.offset.reset=smallest\n", [("error", "")]),
        ("enable.auto.offset.store=false\n", [("error", "enable.auto.offset.store")]),
        ("key.serializer=x.Y\n", [("note", "key.serializer")]),
        ("api.version.request=true\n", [("error", "api.version.request")]),
        ("bootstrap.servers=h:1,[::1]:2\n", []),
        ("bootstrap.servers=h:1,no-port\n", [("error", "bootstrap.servers")]),
        ("bootstrap.servers=\n", [("error", "bootstrap.servers")]),
        ("bootstrap.controllers=no-port\n", [("error", "bootstrap.controllers")]),
        ("bootstrap.controllers=\nbootstrap.servers=h:1\n", []),
        ("ackss=1\nretries=x\n", [("error", "ackss"), ("error", "retries")]),
        ("interceptor.classes=x.Y\n", [("error", "interceptor.classes")]),
        ("linger.ms=5000\ndelivery.timeout.ms=1000\n", [("error", "")]),
        ("security.protocol=SSL\nssl.ca.location=/nowhere\n", [("error", "")]),
        ("listeners=PLAINTEXT://h:1\nadvertised.listeners=PLAINTEXT://h:1\n", []),
        (
            "node.id=1\nnum.partition=1\nnum.io.threads=x\n",
            [("error", "num.io.threads"), ("error", "num.partition")],
        ),
        ("num.partitions=3\nauto.create.topics.enable=false\n", []),
        ("num.partitions=3\nclient.id=x\nacks=1\n", [("error", "num.partitions")]),
        ("node.id=1\nbroker.id=2\n", [("error", "")]),
        (
            "node.id=1\nbroker.id=2\nnum.partition=1\n",
            [("error", ""), ("error", "num.partition")],
        ),
        (
            "metrics.listener=http://0.0.0.0:9404\nrequest.log.topic=__consumer_offsets\n",
            [("error", ""), ("error", "")],
        ),
        ("node.id=1\nlog.preallocate=true\n", [("note", "log.preallocate")]),
        ("node.id=1\nzookeeper.connect=h:1\n", [("note", "zookeeper.connect")]),
        ("node.id=1\ncontroller.quorum.voters=1@h:1\n", [("note", "controller.quorum.voters")]),
    ],
)
def test_a_file_is_checked_as_a_whole(
    text: str, expected: list[tuple[str, str]], run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "some.properties"
    file.write_text(text)

    done = run("config", "check", str(file), "--json")

    assert expected == [(each["kind"], each["key"]) for each in done.json]
    assert any(kind == "error" for kind, _ in expected) == bool(done.status)


LIBRDKAFKAS: dict[str, str] = {
    "sasl.mechanisms": "PLAIN",
    "metadata.broker.list": "h:1",
    "fetch.wait.max.ms": "5",
    "auto.offset.reset": "smallest",
    "enable.auto.offset.store": "false",
    "api.version.request": "true",
}


@pytest.mark.parametrize("key", [*LIBRDKAFKAS, "fetch.min.bytes", "key.deserializer"])
def test_a_file_passes_if_a_client_takes_its_settings(key: str, run: Run, tmp_path: Path) -> None:
    """A consumer's own words are those of the check."""
    value = LIBRDKAFKAS.get(key, "1")
    file = tmp_path / "consumer.properties"
    file.write_text(f"{key}={value}\n")
    try:
        consumer_settings({key: value}, {})
        expected = []
    except ConfigError as error:
        expected = [str(error)]

    found = run("config", "check", str(file), "--as", "consumer", "--json").json

    assert (key in LIBRDKAFKAS) == bool(expected)
    assert expected == [each["text"] for each in found if each["kind"] == "error"]


def test_a_file_may_be_meant_for_one_kind(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("acks=1\n")

    assert 0 == run("config", "check", str(file), "--as", "producer").status
    assert 1 == run("config", "check", str(file), "--as", "consumer").status
