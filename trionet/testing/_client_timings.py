"""Short timings for clients under test, in each library's own settings.

A client's defaults are made for clusters that recover in seconds: it retries, notices a rebalance
and learns of a new topic only after a while, which a test would spend waiting. Not shortened is
what decides when a client gives up, such as a delivery timeout: on a slow machine a test would
fail for that alone.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

Kind: TypeAlias = Literal["producer", "consumer", "admin"]
"""The kinds of clients."""
KINDS: Final = ("producer", "consumer", "admin")

# Kafka's keys, which the Java client and trionet's own have.
_JAVA: Final[dict[str, dict[str, int]]] = {
    "": {
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 100,
        "retry.backoff.ms": 10,
        "retry.backoff.max.ms": 100,
        # A consumer learns only by this of a topic that is created after it has subscribed.
        "metadata.max.age.ms": 500,
    },
    "producer": {"linger.ms": 0},
    "consumer": {
        "heartbeat.interval.ms": 100,  # how a member learns of a rebalance
        "session.timeout.ms": 6000,  # the least that brokers allow (group.min.session.timeout.ms)
        "auto.commit.interval.ms": 100,
        "fetch.max.wait.ms": 100,
    },
    "admin": {},
}
_LIBRDKAFKA: Final[dict[str, dict[str, int]]] = {
    "": {
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 100,
        "retry.backoff.ms": 10,
        "retry.backoff.max.ms": 100,
        "topic.metadata.refresh.fast.interval.ms": 10,
        "topic.metadata.refresh.interval.ms": 500,
    },
    "producer": {"linger.ms": 0},
    "consumer": {
        "heartbeat.interval.ms": 100,
        "session.timeout.ms": 6000,
        "auto.commit.interval.ms": 100,
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 10,
    },
    "admin": {},
}
#: What kafka-python has of Kafka's keys, which is less; so is what aiokafka has.
_NOT_IN_KAFKA_PYTHON: Final = {"retry.backoff.max.ms"}
_NOT_IN_AIOKAFKA: Final = {
    "retry.backoff.max.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
}


def timings(client: str, kind: Kind) -> dict[str, int]:
    """Return short timings for a client.

    Args:
        client: the library, one of :data:`.CLIENTS`.
        kind: the kind of client.

    Raises:
        ValueError: there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown kind of client {kind!r}; allowed: {', '.join(KINDS)}")
    if client == "confluent-kafka":
        return _LIBRDKAFKA[""] | _LIBRDKAFKA[kind]
    found = _JAVA[""] | _JAVA[kind]
    if client == "java":
        return found
    missing = _NOT_IN_AIOKAFKA if client == "aiokafka" else _NOT_IN_KAFKA_PYTHON
    return {key.replace(".", "_"): found[key] for key in found if key not in missing}
