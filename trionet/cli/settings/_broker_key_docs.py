"""What the settings of brokers mean, as the page about them has it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "advertised.listeners": (
            "where clients are told to connect, if it is not where the broker listens"
        ),
        "auto.create.topics.enable": "make a topic when a client asks for it and allows it",
        "broker.id": "the same as node.id",
        "broker.rack": "what clients are told of the broker's place",
        "compression.gzip.level": (
            "how hard gzip tries where compression.type asks for it: -1 (as 6), or from 1 to 9"
        ),
        "compression.lz4.level": (
            "the same of lz4, from 1 to 17: 9 is its fast compressor, every other level its slow "
            "one, which gets no better above 12"
        ),
        "compression.type": (
            "the codec in which batches are stored: gzip, snappy, lz4, zstd, uncompressed, or "
            "producer, the one they come in; see Compression"
        ),
        "compression.zstd.level": (
            "the same of zstd, from -131072 to 22; 22 takes a tenth of a second for the smallest "
            "batch"
        ),
        "connection.failed.authentication.delay.ms": (
            "how long the answer to a failed SASL authentication is held back; less than "
            "connections.max.idle.ms"
        ),
        "connections.max.idle.ms": (
            "a connection that was not used for so long is closed; -1 is no limit"
        ),
        "connections.max.reauth.ms": "the longest life of a SASL session; 0 is no limit",
        "default.replication.factor": (
            "replicas of topics that do not say; with several brokers as many as there are, up "
            "to three"
        ),
        "delete.topic.enable": "whether clients may delete topics",
        "fetch.max.bytes": "most bytes in the answer to a fetch",
        "group.initial.rebalance.delay.ms": (
            "how long an empty group waits for more members than its first; 0 in open_broker"
        ),
        "group.max.session.timeout.ms": "the longest session timeout a member may ask for",
        "group.max.size": "members of a group; the next one is refused",
        "group.min.session.timeout.ms": "the shortest session timeout a member may ask for",
        "inter.broker.listener.name": "the listener that the others make room for",
        "listener.security.protocol.map": "the protocol of each listener's name",
        "listeners": "where to listen",
        "log.dir": "the data folder, if log.dirs is not set; the default is Kafka's and not used",
        "log.dirs": "the data folder; without, everything is in memory",
        "log.flush.interval.messages": "see Durability",
        "log.flush.interval.ms": "see Durability",
        "log.flush.offset.checkpoint.interval.ms": (
            "how often it is written down what is on the disk"
        ),
        "log.flush.scheduler.interval.ms": "stands for log.flush.interval.ms where that is not set",
        "log.index.interval.bytes": "bytes of batches between two index entries",
        "log.index.size.max.bytes": "size of an index file at which its segment ends",
        "log.initial.task.delay.ms": (
            "how long after the start old segments are looked for, and what is on the disk is "
            "written down, the first time; never longer than the interval of the one or the "
            "other"
        ),
        "log.message.timestamp.after.max.ms": "how far in the future a record's time may be",
        "log.message.timestamp.before.max.ms": "how far in the past it may be",
        "log.message.timestamp.type": "CreateTime or LogAppendTime",
        "log.missing.records.allowed": (
            "start although records are missing that had been on the disk; false refuses to"
        ),
        "log.retention.bytes": (
            "size of a partition above which its oldest segments go; -1 is no limit"
        ),
        "log.retention.check.interval.ms": (
            "how often segments that are too old or too many are looked for"
        ),
        "log.retention.hours": "age at which a segment goes; -1 is no limit",
        "log.retention.minutes": "the same; wins over hours",
        "log.retention.ms": "the same; wins over minutes",
        "log.roll.hours": "age at which a segment ends",
        "log.roll.jitter.hours": "up to so much is taken off that age, at random",
        "log.roll.jitter.ms": "the same; wins over hours",
        "log.roll.ms": "age at which a segment ends; wins over hours",
        "log.segment.bytes": "size at which a segment ends",
        "max.connection.creation.rate": "new connections a second; the next one waits",
        "max.connections": (
            "open connections; the next one waits until one closes. At most the file descriptors "
            "that file.descriptors.reserve leaves"
        ),
        "max.connections.per.ip": "open connections of one address; the next one is refused",
        "max.connections.per.ip.overrides": (
            "the same for single hosts: HOST:COUNT, separated by commas"
        ),
        "max.incremental.fetch.session.cache.slots": "incremental fetch sessions",
        "max.request.partition.size.limit": "most partitions on a page of DescribeTopicPartitions",
        "message.max.bytes": "largest batch",
        "auto.create.topics.ready.at.once": (
            "whether the Metadata response that creates a topic has its partitions; Kafka's has "
            "UNKNOWN_TOPIC_OR_PARTITION, and clients ask again. open_broker and the test kit set it"
        ),
        "file.descriptors.reserve": (
            "file descriptors that connections leave to files; unset, half of what the process may "
            "open"
        ),
        "group.member.max.protocols": (
            "protocols that a member of a group may offer; one with more is refused with "
            "INCONSISTENT_GROUP_PROTOCOL"
        ),
        "max.incremental.fetch.session.cache.elements": (
            "partitions of all incremental fetch sessions together; without room, a "
            "consumer fetches without a session"
        ),
        "metrics.listener": "where metrics are told, as http://HOST:PORT or https://HOST:PORT",
        "metrics.listener.token": (
            "what readers of metrics must have; on other machines than this one they must have it"
        ),
        "metrics.num.samples": "windows that rates and averages in the metrics are taken over",
        "metrics.sample.window.ms": "the length of one",
        "node.id": "the broker's number",
        "num.io.threads": "tasks that handle requests",
        "num.network.threads": "processors of each listener; all run on one core",
        "num.partitions": "for topics that ask for none",
        "num.recovery.threads.per.data.dir": (
            "logs that are recovered at once at a start after a crash"
        ),
        "offset.metadata.max.bytes": "what a client may keep with a committed offset",
        "offsets.retention.check.interval.ms": "how often offsets that nobody needs are looked for",
        "offsets.retention.minutes": "how long offsets are kept after the last member has left",
        "producer.id.expiration.check.interval.ms": (
            "how often idle idempotent producers are looked for"
        ),
        "producer.id.expiration.ms": "how long an idle idempotent producer is remembered",
        "queued.max.request.bytes": "memory of all requests above 4 KB together; -1 is no limit",
        "queued.max.requests": (
            "requests that may wait for a handler; above, the broker stops reading"
        ),
        "quota.window.num": "windows that connections a second are counted over",
        "quota.window.size.seconds": "the length of one; also the longest wait for a rate",
        "request.log.buffer.records": (
            "records of the request log that wait to be written at most; what comes then is "
            "dropped, and counted"
        ),
        "request.log.linger.ms": "how long they wait for others",
        "request.log.partitions": "of its topic, if there is none of that name at the start",
        "request.log.sample": "which share of the requests is logged",
        "request.log.topic": (
            "the topic with a record for each request and each closed connection; without it "
            "there is no such log"
        ),
        "request.max.elements": (
            "what a request may hold: elements of arrays, arrays, and tags; a request with more "
            "closes its connection"
        ),
        "ssl.store.max.bytes": "the largest key store or trust store",
        "response.max.bytes": (
            "what the broker builds of a response in memory, records aside; one that would be "
            "larger closes its connection"
        ),
        "sasl.enabled.mechanisms": (
            "of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER; a listener with SASL must "
            "be given some"
        ),
        "sasl.jaas.config": "as listener.name.LISTENER.plain.sasl.jaas.config: the users of PLAIN",
        "sasl.oauthbearer.clock.skew.seconds": "how far the clock of a token issuer may differ",
        "sasl.oauthbearer.expected.audience": "one of these must be a token's audience",
        "sasl.oauthbearer.expected.issuer": "a token's issuer must be this one",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": (
            "how often the keys of the issuer are read again"
        ),
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": (
            "the longest wait after a reading that failed"
        ),
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "the first wait after one",
        "sasl.oauthbearer.jwks.endpoint.url": "where those keys are: file: or https:",
        "sasl.oauthbearer.scope.claim.name": "the claim of a token that lists its scopes",
        "sasl.oauthbearer.sub.claim.name": "the claim that names its bearer",
        "sasl.server.callback.handler.class": (
            "for OAUTHBEARER only: Kafka's class that takes unsigned tokens, for tests of clients"
        ),
        "sasl.server.max.receive.size": "largest frame before the end of a SASL authentication",
        "socket.listen.backlog.size": "connections that the kernel keeps before they are accepted",
        "socket.receive.buffer.bytes": "of the kernel; -1 leaves the system's",
        "socket.request.max.bytes": "largest request; a larger one closes its connection",
        "socket.send.buffer.bytes": "of the kernel; -1 leaves the system's",
        "ssl.allow.dn.changes": "whether a certificate may be replaced by one with another subject",
        "ssl.allow.san.changes": "whether by one that lacks another name",
        "ssl.cipher.suites": "by their standard names; empty is OpenSSL's choice",
        "ssl.client.auth": "whether clients must show certificates: none, requested, required",
        "ssl.enabled.protocols": "TLSv1.2, TLSv1.3 or both",
        "ssl.key.password": "of an encrypted key",
        "ssl.keystore.certificate.chain": "certificates as PEM text, with ssl.keystore.key",
        "ssl.keystore.key": "the key as PEM text, in place of a file",
        "ssl.keystore.location": (
            "the file with the key and its certificates; read again when it changes"
        ),
        "ssl.keystore.password": "of a PKCS12 file",
        "ssl.keystore.type": "PEM, PKCS12, or JKS for a file that is PKCS12 inside",
        "ssl.principal.mapping.rules": (
            "from the names in clients' certificates to those of users; names are written as "
            "Java writes them, except that a BMPString is read as UTF-16"
        ),
        "ssl.truststore.certificates": "certificates to trust, as PEM text",
        "ssl.truststore.location": (
            "the file with certificates to trust; read again when it changes"
        ),
        "ssl.truststore.password": "of a PKCS12 file",
        "ssl.truststore.type": "PEM, PKCS12, or JKS for a file that is PKCS12 inside",
    }
)
