"""Descriptions of broker settings, the same as in docs/howto/run-a-broker.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "advertised.listeners": "addresses that clients connect to, if they differ from listeners",
        "auto.create.topics.enable": (
            "create a topic when a client requests it and allows its creation"
        ),
        "broker.id": "alias of node.id",
        "broker.rack": "the broker's rack, as reported to clients",
        "compression.gzip.level": (
            "gzip level when compression.type selects it: -1 (same as 6), or 1 to 9"
        ),
        "compression.lz4.level": (
            "lz4 level, 1 to 17: 9 selects the fast compressor, every other level the slow one, "
            "which does not improve above 12"
        ),
        "compression.type": (
            "the codec in which batches are stored: gzip, snappy, lz4, zstd, uncompressed, or "
            "producer to keep that of the producer; see Compression"
        ),
        "compression.zstd.level": (
            "zstd level, -131072 to 22; 22 takes a tenth of a second for the smallest batch"
        ),
        "connection.failed.authentication.delay.ms": (
            "delay before the response to a failed SASL authentication; less than "
            "connections.max.idle.ms"
        ),
        "connections.max.idle.ms": "close a connection after this idle time; -1 for no limit",
        "connections.max.reauth.ms": "longest lifetime of a SASL session; 0 for no limit",
        "default.replication.factor": (
            "replication factor of topics created without one; with several brokers it defaults "
            "to their number, at most three"
        ),
        "delete.topic.enable": "whether clients may delete topics",
        "fetch.max.bytes": "most bytes in a fetch response",
        "group.initial.rebalance.delay.ms": (
            "how long an empty group waits for more members after the first; 0 in open_broker"
        ),
        "group.max.session.timeout.ms": "longest session timeout a member may request",
        "group.max.size": "most members of a group; further ones are rejected",
        "group.min.session.timeout.ms": "shortest session timeout a member may request",
        "inter.broker.listener.name": (
            "the listener whose connections take precedence when max.connections is reached"
        ),
        "listener.security.protocol.map": "security protocol of each listener name",
        "listeners": "addresses to listen on",
        "log.dir": "data directory if log.dirs is not set; Kafka's default does not apply",
        "log.dirs": "data directory; if it is not set, everything is kept in memory",
        "log.flush.interval.messages": "see Durability",
        "log.flush.interval.ms": "see Durability",
        "log.flush.offset.checkpoint.interval.ms": (
            "how often the recovery points, up to which logs are flushed, are written"
        ),
        "log.flush.scheduler.interval.ms": "default of log.flush.interval.ms",
        "log.index.interval.bytes": "bytes of batches between index entries",
        "log.index.size.max.bytes": "size of an index file at which its segment rolls",
        "log.initial.task.delay.ms": (
            "delay after the start before the first retention check and the first write of "
            "recovery points; limited to their intervals"
        ),
        "log.message.timestamp.after.max.ms": "how far a record's timestamp may lie in the future",
        "log.message.timestamp.before.max.ms": "how far a record's timestamp may lie in the past",
        "log.message.timestamp.type": "CreateTime or LogAppendTime",
        "log.missing.records.allowed": "whether to start although flushed records are missing",
        "log.retention.bytes": (
            "size of a partition above which its oldest segments are deleted; -1 for no limit"
        ),
        "log.retention.check.interval.ms": (
            "how often segments are checked against the retention limits"
        ),
        "log.retention.hours": "age at which a segment is deleted; -1 for no limit",
        "log.retention.minutes": "the same in minutes; overrides hours",
        "log.retention.ms": "the same in milliseconds; overrides minutes",
        "log.roll.hours": "age at which a segment rolls",
        "log.roll.jitter.hours": "most that is subtracted from that age at random",
        "log.roll.jitter.ms": "the same in milliseconds; overrides hours",
        "log.roll.ms": "age at which a segment rolls; overrides hours",
        "log.segment.bytes": "size at which a segment rolls",
        "max.connection.creation.rate": "new connections per second; further ones wait",
        "max.connections": (
            "most open connections; further ones wait until one closes. Limited by the file "
            "descriptors that file.descriptors.reserve leaves"
        ),
        "max.connections.per.ip": (
            "most open connections from one address; further ones are rejected"
        ),
        "max.connections.per.ip.overrides": (
            "the same for single hosts: HOST:COUNT, separated by commas"
        ),
        "max.incremental.fetch.session.cache.slots": "most incremental fetch sessions",
        "max.request.partition.size.limit": "most partitions per page of DescribeTopicPartitions",
        "message.max.bytes": "largest batch",
        "auto.create.topics.ready.at.once": (
            "whether the Metadata response that creates a topic includes its partitions; Kafka "
            "returns UNKNOWN_TOPIC_OR_PARTITION and clients retry. Set by open_broker and the "
            "test kit"
        ),
        "file.descriptors.reserve": (
            "file descriptors reserved for files; defaults to half of the process's limit"
        ),
        "group.member.max.protocols": (
            "most protocols a member of a group may offer; a member with more is rejected with "
            "INCONSISTENT_GROUP_PROTOCOL"
        ),
        "max.incremental.fetch.session.cache.elements": (
            "most partitions of all incremental fetch sessions together; a consumer beyond that "
            "fetches without a session"
        ),
        "metrics.listener": "where metrics are served, as http://HOST:PORT or https://HOST:PORT",
        "metrics.listener.token": (
            "token that readers of metrics must send; required unless the listener is local"
        ),
        "metrics.num.samples": "number of windows for rates and averages in the metrics",
        "metrics.sample.window.ms": "length of such a window",
        "node.id": "the broker's id",
        "num.io.threads": "number of tasks that handle requests",
        "num.network.threads": "processors per listener; all run on one core",
        "num.partitions": "partitions of topics created without a number",
        "num.recovery.threads.per.data.dir": (
            "logs recovered concurrently when starting after a crash"
        ),
        "offset.metadata.max.bytes": "most bytes of metadata stored with a committed offset",
        "offsets.retention.check.interval.ms": "how often expired offsets are looked for",
        "offsets.retention.minutes": "how long offsets are kept after the last member has left",
        "producer.id.expiration.check.interval.ms": "how often expired producer ids are looked for",
        "producer.id.expiration.ms": "how long the state of an idle idempotent producer is kept",
        "queued.max.request.bytes": "memory for all requests above 4 KB together; -1 for no limit",
        "queued.max.requests": (
            "most requests waiting for a handler; beyond that the broker stops reading"
        ),
        "quota.window.num": "number of windows for the connection creation rate",
        "quota.window.size.seconds": "length of such a window; also the longest wait for a rate",
        "request.log.buffer.records": (
            "most records of the request log waiting to be written; further ones are dropped and"
            " counted"
        ),
        "request.log.linger.ms": "how long they wait for others",
        "request.log.partitions": "partitions of its topic, if it does not exist at the start",
        "request.log.sample": "share of requests that is logged",
        "request.log.topic": (
            "topic that gets a record for each request and each closed connection; without it "
            "nothing is logged"
        ),
        "request.max.elements": (
            "most elements of arrays, arrays, and tags in a request; a request with more closes "
            "its connection"
        ),
        "ssl.store.max.bytes": "largest keystore or truststore",
        "response.max.bytes": (
            "most bytes of a response built in memory, excluding records; a larger one closes "
            "its connection"
        ),
        "sasl.enabled.mechanisms": (
            "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER; required for a listener with SASL"
        ),
        "sasl.jaas.config": "the users of PLAIN, as listener.name.LISTENER.plain.sasl.jaas.config",
        "sasl.oauthbearer.clock.skew.seconds": "accepted clock difference to the issuer of tokens",
        "sasl.oauthbearer.expected.audience": "accepted audiences of a token",
        "sasl.oauthbearer.expected.issuer": "accepted issuer of a token",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": "how often the issuer's keys are reloaded",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "longest wait after a failed reload",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "first wait after a failed reload",
        "sasl.oauthbearer.jwks.endpoint.url": "URL of those keys: file: or https:",
        "sasl.oauthbearer.scope.claim.name": "claim of a token that lists its scopes",
        "sasl.oauthbearer.sub.claim.name": "claim of a token that names the user",
        "sasl.server.callback.handler.class": (
            "for OAUTHBEARER only: Kafka's class that accepts unsigned tokens, for testing clients"
        ),
        "sasl.server.max.receive.size": "largest frame before SASL authentication is complete",
        "socket.listen.backlog.size": "connections that the kernel queues before they are accepted",
        "socket.receive.buffer.bytes": "kernel buffer for receiving; -1 for the system's default",
        "socket.request.max.bytes": "largest request; a larger one closes its connection",
        "socket.send.buffer.bytes": "kernel buffer for sending; -1 for the system's default",
        "ssl.allow.dn.changes": "whether a replacement certificate may have another subject",
        "ssl.allow.san.changes": (
            "whether a replacement certificate may lack a subject alternative name"
        ),
        "ssl.cipher.suites": "standard names of cipher suites; empty for OpenSSL's choice",
        "ssl.client.auth": "whether clients must present certificates: none, requested, required",
        "ssl.enabled.protocols": "TLSv1.2, TLSv1.3 or both",
        "ssl.key.password": "password of an encrypted key",
        "ssl.keystore.certificate.chain": "certificates as PEM text, with ssl.keystore.key",
        "ssl.keystore.key": "key as PEM text, instead of a file",
        "ssl.keystore.location": "file with the key and its certificates; reloaded when it changes",
        "ssl.keystore.password": "password of a PKCS12 file",
        "ssl.keystore.type": "PEM, PKCS12, or JKS for a file with PKCS12 content",
        "ssl.principal.mapping.rules": (
            "rules from the distinguished names of client certificates to user names; the names "
            "are formatted as in Java, except that a BMPString is decoded as UTF-16"
        ),
        "ssl.truststore.certificates": "trusted certificates as PEM text",
        "ssl.truststore.location": "file with trusted certificates; reloaded when it changes",
        "ssl.truststore.password": "password of a PKCS12 file",
        "ssl.truststore.type": "PEM, PKCS12, or JKS for a file with PKCS12 content",
    }
)
