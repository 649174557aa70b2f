"""Transactions a second: one producer, 10 records of 100 bytes each, both brokers on tmpfs.

The brokers run at the same time and are measured in turn, with each client. trionet's client uses
the newer of Kafka's protocols (KIP-890), librdkafka's the older one, which has more requests.
"""

from __future__ import annotations

from bench.brokers import running_brokers
from bench.clients.process import Side
from bench.clients.task import Task
from bench.measured import Figure, Measured
from bench.options import Options
from bench.topics import topic

RUNS = 5
SECONDS = 3.0
BROKERS = ("trionet disk", "Apache Kafka")
CLIENTS = (
    Side("trionet's client", "ours", "transact"),
    Side("confluent-kafka", "confluent", "transact"),
)


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "transactions of 10 records, one after another",
        (
            Figure("commits", "commits/s"),
            Figure("p50_us", "p50 µs"),
            Figure("p99_us", "p99 µs"),
        ),
    )
    wanted = Options(options.runs, options.seconds, options.sides or BROKERS, options.cases)
    with running_brokers(wanted, measured) as brokers:
        for run in range(options.runs):
            for number, client in enumerate(CLIENTS):
                if not options.wants_case(client.name):
                    continue
                for broker in brokers[:: 1 if run % 2 else -1]:
                    name = f"commits-{run}-{number}"
                    task = Task(broker.bootstrap, name, seconds=options.seconds)
                    with topic(broker.bootstrap, name):
                        measured.add(client.name, broker.side, client.run(task))
    return measured
