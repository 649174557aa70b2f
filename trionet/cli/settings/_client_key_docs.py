"""What the settings of clients mean, as the page about them has it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "acks": (
            "who has a record before it counts as sent: all replicas in sync, 1 for the leader "
            "alone, 0 for nobody"
        ),
        "allow.auto.create.topics": (
            "whether asking for a topic may make it, where the broker lets it"
        ),
        "auto.commit.interval.ms": (
            "how often the records that the loop has finished with are committed"
        ),
        "auto.offset.reset": (
            "where to begin without an offset: latest, earliest, none for an error, or "
            "by_duration:PT1H for so long ago"
        ),
        "batch.size": (
            "bytes of one batch of one partition, before compression; 0 sends each record by itself"
        ),
        "bootstrap.controllers": (
            "controllers that are asked in place of brokers (KIP-919); bootstrap_servers is left "
            "out then"
        ),
        "buffer.memory": "bytes of records that are not acknowledged yet; who has more waits",
        "check.crcs": "whether the checksum of each batch is looked at",
        "client.dns.lookup": (
            "all addresses of a name are tried; Kafka's other value is not supported"
        ),
        "client.id": "what the client calls itself, in the brokers' logs and metrics",
        "client.rack": "where the client is: replicas of the same rack are read from (KIP-392)",
        "compression.gzip.level": "-1 (as 6), or from 1 to 9",
        "compression.lz4.level": "from 1 to 17",
        "compression.type": "none, gzip, snappy, lz4 or zstd",
        "compression.zstd.level": "from -131072 to 22",
        "connections.max.idle.ms": (
            "a connection that was not used for so long is closed; -1 is no limit"
        ),
        "default.api.timeout.ms": (
            "how long a question to the cluster is asked again while it cannot be answered"
        ),
        "delivery.timeout.ms": (
            "how long a record may take to be acknowledged, all attempts together; at least "
            "linger.ms + request.timeout.ms, which the default follows"
        ),
        "enable.auto.commit": (
            "whether offsets are committed without being told; without group.id they are not"
        ),
        "enable.idempotence": (
            "each record is written once and in order, whatever is tried again; off if it was "
            "not asked for and acks is not all or retries is 0"
        ),
        "enable.metrics.push": (
            "whether the client's metrics go to brokers that ask for them (KIP-714)"
        ),
        "exclude.internal.topics": "no pattern matches Kafka's own topics",
        "fetch.max.bytes": "bytes of one answer to a fetch, and of all that is fetched ahead",
        "fetch.max.wait.ms": (
            "how long a node may wait for fetch.min.bytes; less than request.timeout.ms"
        ),
        "fetch.min.bytes": "a node answers when it has so much",
        "group.id": (
            "the consumer group; without, partitions are assigned by hand and nothing is committed"
        ),
        "group.instance.id": (
            "the name of a static member, which keeps its partitions over a restart (KIP-345)"
        ),
        "heartbeat.interval.ms": "between two heartbeats; less than session.timeout.ms",
        "isolation.level": (
            "read_committed leaves out records of transactions that were aborted or are undecided"
        ),
        "linger.ms": "how long a batch that is not full waits for more records",
        "max.block.ms": (
            "how long a call waits for room in buffer.memory, or until a topic is known"
        ),
        "max.in.flight.requests.per.connection": (
            "requests to one node that are not answered yet; with idempotence up to 5"
        ),
        "max.partition.fetch.bytes": "bytes of one partition in an answer, and of it fetched ahead",
        "max.poll.interval.ms": (
            "who does not ask for the next record for so long leaves the group; a rebalance "
            "waits for a member as long"
        ),
        "max.poll.records": "records in one batch of batches()",
        "max.request.size": "bytes of one request, and so of one record",
        "metadata.max.age.ms": (
            "after so long the cluster is asked again for its nodes, topics and leaders, even if "
            "nothing went wrong"
        ),
        "metadata.max.idle.ms": "a topic that nothing was sent to for so long is forgotten",
        "metadata.recovery.rebootstrap.trigger.ms": (
            "so long without an answer about the cluster, the client begins again with the "
            "servers it was given (KIP-1102)"
        ),
        "metadata.recovery.strategy": "none turns that off",
        "metrics.num.samples": "windows that rates and averages in statistics() are taken over",
        "metrics.sample.window.ms": "the length of one",
        "partition.assignment.strategy": (
            "range, roundrobin, sticky and cooperative-sticky, or Kafka's classes of them, in "
            "the order of preference"
        ),
        "partitioner.adaptive.partitioning.enable": (
            "records without a key go more often to partitions that are quick (KIP-794)"
        ),
        "partitioner.availability.timeout.ms": (
            "a partition that took nothing for so long gets no records without a key; 0 is no "
            "such limit"
        ),
        "partitioner.ignore.keys": "records with a key go anywhere, as those without",
        "receive.buffer.bytes": "the socket's buffer for receiving; -1 is the system's default",
        "receive.message.max.bytes": (
            "the largest response that is taken, a larger one is an error of its request; "
            "librdkafka's key"
        ),
        "reconnect.backoff.max.ms": "the most of the wait below",
        "reconnect.backoff.ms": (
            "the wait before a lost connection is made anew, doubled with each failure in a row; "
            "if only this one is set, it does not grow"
        ),
        "request.timeout.ms": "how long an answer may take; its connection is closed then",
        "retries": "how often a batch is sent again; delivery.timeout.ms ends it in any case",
        "retry.backoff.max.ms": "the most of the wait below",
        "retry.backoff.ms": (
            "the wait before a request that failed is sent again, doubled with each failure"
        ),
        "sasl.jaas.config": (
            "user name and password in Kafka's form: a login module of PLAIN, SCRAM or "
            'OAUTHBEARER, with username and password; tokenauth="true" for a delegation token'
        ),
        "sasl.login.connect.timeout.ms": (
            "how long connecting to the token endpoint may take; 10 seconds if it is not set"
        ),
        "sasl.login.read.timeout.ms": "how long its answer may take, the same",
        "sasl.login.refresh.buffer.seconds": (
            "how long before its end a token is replaced at the latest"
        ),
        "sasl.login.refresh.min.period.seconds": "how long the next refresh waits at least",
        "sasl.login.refresh.window.factor": (
            "after what part of its life a token is replaced, 0.5 to 1"
        ),
        "sasl.login.refresh.window.jitter": "by what part of its life that is blurred, 0 to 0.25",
        "sasl.login.retry.backoff.max.ms": (
            "for so long a token endpoint that cannot be reached is asked again"
        ),
        "sasl.login.retry.backoff.ms": "the wait before that, doubled with each failure",
        "sasl.mechanism": (
            "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; Kafka's default has to be replaced"
        ),
        "sasl.oauthbearer.client.credentials.client.id": (
            "who the client is to the token endpoint; or clientId in sasl.jaas.config"
        ),
        "sasl.oauthbearer.client.credentials.client.secret": "its secret; or clientSecret there",
        "sasl.oauthbearer.header.urlencode": (
            "both are URL-encoded before they go into the header Authorization"
        ),
        "sasl.oauthbearer.scope": "what the token is to be good for; or scope there",
        "sasl.oauthbearer.token.endpoint.url": (
            "the OAuth server that gives tokens for these, https:// or http://; or file://, a "
            "file with a token that something else keeps fresh"
        ),
        "sasl.password": "the password of PLAIN or SCRAM; librdkafka's key",
        "sasl.username": "the user name; librdkafka's key",
        "security.protocol": "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
        "send.buffer.bytes": "the socket's buffer for sending; -1 is the system's default",
        "session.timeout.ms": (
            "a member that was not heard of for so long is thrown out of the group"
        ),
        "socket.connection.setup.timeout.max.ms": "the most of the time below",
        "socket.connection.setup.timeout.ms": (
            "how long connecting may take, doubled with each failure in a row"
        ),
        "ssl.ca.location": (
            "a file of trusted certificates in PEM, or a folder of such files; librdkafka's key"
        ),
        "ssl.ca.pem": "the same as text",
        "ssl.certificate.location": (
            "a file with the client's certificate and those between it and its authority, in "
            "PEM; librdkafka's key"
        ),
        "ssl.certificate.pem": "the same as text",
        "ssl.cipher.suites": "by their standard names; empty is OpenSSL's choice",
        "ssl.enabled.protocols": "versions of TLS",
        "ssl.endpoint.identification.algorithm": (
            "https compares the name of the broker with its certificate; empty does not, and "
            "lets anybody with a certificate of the same authority pass for the broker"
        ),
        "ssl.key.location": "a file with the client's private key, in PEM; librdkafka's key",
        "ssl.key.password": "of an encrypted private key",
        "ssl.key.pem": "the same as text",
        "ssl.keystore.certificate.chain": (
            "the client's certificates as text in PEM, with ssl.keystore.type=PEM"
        ),
        "ssl.keystore.key": "the client's private key as text in PEM",
        "ssl.keystore.location": "a file with the client's key and certificates",
        "ssl.keystore.password": "its password",
        "ssl.keystore.type": "PEM, PKCS12, or JKS for a file that is PKCS12 all the same",
        "ssl.truststore.certificates": (
            "trusted certificates as text in PEM, with ssl.truststore.type=PEM"
        ),
        "ssl.truststore.location": (
            "a file of trusted certificates; without any, those of the system are trusted"
        ),
        "ssl.truststore.password": "its password",
        "ssl.truststore.type": "as ssl.keystore.type",
    }
)
