"""Descriptions of client settings, the same as in docs/reference/client-settings.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "acks": (
            "acknowledgements to wait for: all in-sync replicas, 1 for the leader only, 0 for none"
        ),
        "allow.auto.create.topics": (
            "whether a metadata request may create a topic, if the broker allows it"
        ),
        "auto.commit.interval.ms": "how often the offsets of processed records are committed",
        "auto.offset.reset": (
            "where to start without an offset: latest, earliest, none to raise an error, or "
            "by_duration:PT1H for a time ago"
        ),
        "batch.size": "most bytes of a batch before compression; 0 sends each record by itself",
        "bootstrap.controllers": (
            "controllers to contact instead of brokers (KIP-919); bootstrap_servers is then omitted"
        ),
        "buffer.memory": "bytes of unacknowledged records; further sends wait until space is free",
        "check.crcs": "whether the checksum of each batch is verified",
        "client.dns.lookup": (
            "all addresses of a name are tried; Kafka's other value is not supported"
        ),
        "client.id": "the client's name in the brokers' logs and metrics",
        "client.rack": "the client's rack: it fetches from replicas of the same rack (KIP-392)",
        "compression.gzip.level": "-1 (same as 6), or 1 to 9",
        "compression.lz4.level": "1 to 17",
        "compression.type": "none, gzip, snappy, lz4 or zstd",
        "compression.zstd.level": "-131072 to 22",
        "connections.max.idle.ms": "close a connection after this idle time; -1 for no limit",
        "default.api.timeout.ms": "how long a call is retried",
        "delivery.timeout.ms": (
            "time limit for the acknowledgement of a record, all attempts together; at least "
            "linger.ms + request.timeout.ms, which the default follows"
        ),
        "enable.auto.commit": "whether offsets are committed automatically; never without group.id",
        "enable.idempotence": (
            "write each record once and in order despite retries; off by default if acks is not "
            "all or retries is 0"
        ),
        "enable.metrics.push": (
            "whether to push client metrics to brokers that subscribe to them (KIP-714)"
        ),
        "exclude.internal.topics": "exclude Kafka's internal topics from patterns",
        "fetch.max.bytes": "most bytes of a fetch response, and of all prefetched records",
        "fetch.max.wait.ms": (
            "how long a broker waits for fetch.min.bytes; less than request.timeout.ms"
        ),
        "fetch.min.bytes": "a broker responds to a fetch when this many bytes are available",
        "group.id": (
            "the consumer group; without it, partitions are assigned manually and nothing is "
            "committed"
        ),
        "group.instance.id": (
            "id of a static member, which keeps its partitions across a restart (KIP-345)"
        ),
        "heartbeat.interval.ms": "interval of heartbeats; less than session.timeout.ms",
        "isolation.level": "read_committed omits records of aborted and open transactions",
        "linger.ms": "how long a batch that is not full waits for more records",
        "max.block.ms": "how long a call waits for buffer.memory or for the metadata of a topic",
        "max.in.flight.requests.per.connection": (
            "most requests in flight per broker; at most 5 with idempotence"
        ),
        "max.partition.fetch.bytes": (
            "most bytes per partition in a fetch response, and prefetched of it"
        ),
        "max.poll.interval.ms": (
            "a consumer that does not request the next record within this time leaves the group;"
            " a rebalance waits as long for a member"
        ),
        "max.poll.records": "most records in a batch of batches()",
        "max.request.size": "most bytes of a request, and so of a record",
        "metadata.max.age.ms": "refresh metadata after this time even without errors",
        "metadata.max.idle.ms": "drop the metadata of a topic that was not sent to for this long",
        "metadata.recovery.rebootstrap.trigger.ms": (
            "after this long without metadata, the client starts again from the bootstrap "
            "servers (KIP-1102)"
        ),
        "metadata.recovery.strategy": "none turns that off",
        "metrics.num.samples": "number of windows for rates and averages in statistics()",
        "metrics.sample.window.ms": "length of such a window",
        "partition.assignment.strategy": (
            "range, roundrobin, sticky and cooperative-sticky, or Kafka's classes, in order of "
            "preference"
        ),
        "partitioner.adaptive.partitioning.enable": (
            "send more records without a key to faster partitions (KIP-794)"
        ),
        "partitioner.availability.timeout.ms": (
            "send no records without a key to a partition that accepted nothing for this long; 0"
            " for no limit"
        ),
        "partitioner.ignore.keys": "distribute records with a key like those without",
        "receive.buffer.bytes": "the socket's buffer for receiving; -1 for the system's default",
        "receive.message.max.bytes": (
            "largest accepted response; a larger one fails its request; librdkafka's key"
        ),
        "reconnect.backoff.max.ms": "upper limit of reconnect.backoff.ms",
        "reconnect.backoff.ms": (
            "wait before reconnecting, doubled after each consecutive failure; constant if only "
            "this key is set"
        ),
        "request.timeout.ms": "time limit for a response; the connection is then closed",
        "retries": "most retries of a batch; limited by delivery.timeout.ms in any case",
        "retry.backoff.max.ms": "upper limit of retry.backoff.ms",
        "retry.backoff.ms": "wait before a failed request is retried, doubled after each failure",
        "sasl.jaas.config": (
            "user name and password in Kafka's form: a login module of PLAIN, SCRAM or "
            'OAUTHBEARER, with username and password; tokenauth="true" for a delegation token'
        ),
        "sasl.login.connect.timeout.ms": (
            "time limit for connecting to the token endpoint; 10 seconds if not set"
        ),
        "sasl.login.read.timeout.ms": "time limit for its response; 10 seconds if not set",
        "sasl.login.refresh.buffer.seconds": (
            "how long before its expiry a token is refreshed at the latest"
        ),
        "sasl.login.refresh.min.period.seconds": "least time between refreshes",
        "sasl.login.refresh.window.factor": (
            "fraction of a token's lifetime after which it is refreshed, 0.5 to 1"
        ),
        "sasl.login.refresh.window.jitter": (
            "random part of a token's lifetime added to that, 0 to 0.25"
        ),
        "sasl.login.retry.backoff.max.ms": "how long an unreachable token endpoint is retried",
        "sasl.login.retry.backoff.ms": "wait before that retry, doubled after each failure",
        "sasl.mechanism": (
            "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; Kafka's default is not supported"
        ),
        "sasl.oauthbearer.client.credentials.client.id": (
            "client id for the token endpoint; or clientId in sasl.jaas.config"
        ),
        "sasl.oauthbearer.client.credentials.client.secret": "client secret; or clientSecret there",
        "sasl.oauthbearer.header.urlencode": (
            "whether both are URL-encoded for the Authorization header"
        ),
        "sasl.oauthbearer.scope": "scope of the token; or scope there",
        "sasl.oauthbearer.token.endpoint.url": (
            "OAuth server that issues tokens for these, https:// or http://; or file://, a file "
            "with a token that is kept up to date externally"
        ),
        "sasl.password": "password for PLAIN or SCRAM; librdkafka's key",
        "sasl.username": "user name; librdkafka's key",
        "security.protocol": "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
        "send.buffer.bytes": "the socket's buffer for sending; -1 for the system's default",
        "session.timeout.ms": (
            "a member whose heartbeats stop for this long is removed from the group"
        ),
        "socket.connection.setup.timeout.max.ms": (
            "upper limit of socket.connection.setup.timeout.ms"
        ),
        "socket.connection.setup.timeout.ms": (
            "time limit for connecting, doubled after each consecutive failure"
        ),
        "ssl.ca.location": (
            "file of trusted certificates in PEM, or a folder of such files; librdkafka's key"
        ),
        "ssl.ca.pem": "the same as text",
        "ssl.certificate.location": (
            "file with the client's certificate and the intermediate ones, in PEM; librdkafka's key"
        ),
        "ssl.certificate.pem": "the same as text",
        "ssl.cipher.suites": "standard names of cipher suites; empty for OpenSSL's choice",
        "ssl.enabled.protocols": "TLS versions",
        "ssl.endpoint.identification.algorithm": (
            "https verifies the broker's host name against its certificate; empty does not, so "
            "any certificate of the same authority passes for the broker's"
        ),
        "ssl.key.location": "file with the client's private key, in PEM; librdkafka's key",
        "ssl.key.password": "password of an encrypted private key",
        "ssl.key.pem": "the same as text",
        "ssl.keystore.certificate.chain": (
            "the client's certificates as PEM text, with ssl.keystore.type=PEM"
        ),
        "ssl.keystore.key": "the client's private key as PEM text",
        "ssl.keystore.location": "file with the client's key and certificates",
        "ssl.keystore.password": "password of ssl.keystore.location",
        "ssl.keystore.type": "PEM, PKCS12, or JKS for a file with PKCS12 content",
        "ssl.truststore.certificates": (
            "trusted certificates as PEM text, with ssl.truststore.type=PEM"
        ),
        "ssl.truststore.location": "file of trusted certificates; those of the system if not set",
        "ssl.truststore.password": "password of ssl.truststore.location",
        "ssl.truststore.type": "PEM, PKCS12, or JKS, as for ssl.keystore.type",
    }
)
