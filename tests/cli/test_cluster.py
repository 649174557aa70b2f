"""`trionet cluster` against our broker; the rest of it is in tests/interop."""

from __future__ import annotations

from pathlib import Path

from support.command_runs import Run
from trionet.testing import ThreadedBroker as Broker
from trionet.testing import broker


def test_brokers_are_shown(run: Run, trionet_broker: Broker) -> None:
    host, port = trionet_broker.bootstrap_servers.split(":")

    done = run("cluster", "describe", "--json", "-b", trionet_broker.bootstrap_servers)

    assert 0 == done.status
    assert [
        {"id": 1, "host": host, "port": int(port), "rack": None, "controller": True}
    ] == done.json["brokers"]
    assert 1 == done.json["controller"]


def test_what_is_not_served_is_reported_beside_the_rest(run: Run, trionet_broker: Broker) -> None:
    b = ["-b", trionet_broker.bootstrap_servers]

    done = run("cluster", "describe", "--quorum", "--format", "csv", *b)
    election = run("cluster", "elect-leaders", "--all", *b)

    assert (1, "id,host,port,rack,controller") == (done.status, done.out.splitlines()[0])
    assert "does not support DescribeQuorum" in done.err
    assert (1, True) == (election.status, "does not support ElectLeaders" in election.err)


def test_folders_are_shown(run: Run, tmp_path: Path) -> None:
    with broker(log_dirs=str(tmp_path)) as node:
        node.create_topic("orders", 2)
        node.seed("orders", ["x"])
        b = ["-b", node.bootstrap_servers]

        [folder] = run("cluster", "log-dirs", "--json", *b).json
        rows = run("cluster", "log-dirs", "orders", "--partitions", "-i", "1", "--json", *b).json
        unknown = run("cluster", "log-dirs", "nowhere", *b)

    assert (1, str(tmp_path), 2) == (folder["broker"], folder["path"], folder["replicas"])
    assert folder["bytes"] > 0
    assert [("orders", 0), ("orders", 1)] == [(row["topic"], row["partition"]) for row in rows]
    assert folder["bytes"] == sum(row["bytes"] for row in rows)
    assert 1 == unknown.status
