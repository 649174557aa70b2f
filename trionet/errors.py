"""The exceptions that trionet raises.

All of them derive from :class:`TrionetError`. Invalid arguments raise ``ValueError`` or
``TypeError`` instead, and ``trio.Cancelled`` is never converted to one of these exceptions. Timeout
errors also derive from ``TimeoutError``. Where two exceptions are easily confused, the docstring
explains the difference.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing it from typing takes longer than this whole module

if TYPE_CHECKING:
    from collections.abc import Sequence


class TrionetError(Exception):
    """The base class of all exceptions of trionet.

    Its text is a single line: unprintable characters, such as those in a host that a broker has
    advertised, are escaped. ``args`` contains them as they are.

    Attributes:
        may_have_been_written: for an error about a record, whether the record may nevertheless be
            in the log, because the leader may not have rejected it. If so, the message says so.
    """

    may_have_been_written = False

    def __str__(self) -> str:
        text = self._text()
        if text.isprintable():
            return text
        # As trionet._util._text.single_line does, which cannot be imported here.
        return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)

    def _text(self) -> str:
        return super().__str__() + self._doubt

    @property
    def _doubt(self) -> str:
        return "; the record may have been written" if self.may_have_been_written else ""

    def __reduce__(self) -> tuple[object, ...]:
        """Support copying and pickling, even if ``args`` differ from ``__init__``'s arguments."""
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(kind: type[TrionetError], args: tuple[object, ...]) -> TrionetError:
    return kind.__new__(kind, *args)


class InvalidReceiveError(TrionetError):
    """The peer announced an invalid or oversized frame (Kafka: InvalidReceiveException).

    Unlike a :class:`WireFormatError`, it is raised before the content of the frame is read.
    """


class WireFormatError(TrionetError):
    """The content of a well-formed frame from the peer could not be decoded."""


class DecompressionLimitError(WireFormatError):
    """Records are larger than a limit when they are decompressed; they may well be intact.

    Args:
        bytes_max: the limit.
    """

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"records are larger than {bytes_max} bytes when decompressed")
        self.bytes_max = bytes_max


class LocalProtocolError(TrionetError):
    """The caller did something that the protocol forbids, such as a second Send on a channel.

    The cause is a bug on the local side, never the peer (Kafka: IllegalStateException).
    """


class UnsupportedVersionError(TrionetError):
    """The peer supports no version of the API in which this request can be encoded.

    (Kafka: UnsupportedVersionException.)
    """


class AuthenticationError(TrionetError):
    """Authentication by TLS or SASL failed (Kafka: AuthenticationException).

    Unlike after a :class:`DisconnectedError`, a retry with the same credentials would fail again.
    """


class ConfigError(TrionetError, ValueError):
    """Settings are unknown or have invalid values; the message says what is allowed.

    ``args`` are the problems that were found: usually one, or all of a file of settings.
    """

    def _text(self) -> str:
        if len(self.args) < 2:
            return super()._text()
        listed = " ".join(f"({number}) {text}" for number, text in enumerate(self.args, 1))
        return f"{len(self.args)} problems: {listed}"


# Kafka's retriable error codes, as in protocol.error_codes.RETRIABLE. They are repeated as numbers
# because this module imports nothing: it must load before the protocol.
_RETRIABLE_CODES = frozenset(
    {2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84}
    | {88, 89, 100, 103, 106, 122, 123, 133}
)

# Kafka's protocol limits strings; the error about a large request may quote much of it.
_API_ERROR_TEXT_MAX = 2000


class ApiError(TrionetError):
    """A broker rejected a request, or one item of it, with a Kafka error code.

    Clients raise it, or return it for the item, when a response has an error code for which this
    module has no more specific exception. :attr:`error_code` says what was wrong: compare it with
    the constants of :mod:`trionet.protocol.error_codes`. If :attr:`retriable` is true, the same
    request may succeed later; clients have already retried it within the limits of their settings.
    Otherwise a retry is pointless until something else changes: the request, the cluster, or what
    the user is permitted to do.

    Inside trionet's broker, raising it sets the error code of the response; it never closes the
    connection.

    Args:
        error_code: Kafka's numeric error code; see :mod:`trionet.protocol.error_codes`.
        message: what was wrong, what is allowed, and what to do; truncated to 2000 characters.

    Attributes:
        error_code: the error code.
        message: the message, truncated if it is too long.
    """

    def __init__(self, error_code: int, message: str = "") -> None:
        if len(message) > _API_ERROR_TEXT_MAX:
            message = f"{message[: _API_ERROR_TEXT_MAX - 4]} ..."
        super().__init__(error_code, message)
        self.error_code = error_code
        self.message = message

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later (Kafka: RetriableException)."""
        return self.error_code in _RETRIABLE_CODES

    def _text(self) -> str:
        return (self.message or f"error code {self.error_code}") + self._doubt


class DisconnectedError(TrionetError):
    """A connection to a node could not be established, or was lost before the response arrived.

    It is not known whether the request was carried out (Kafka: DisconnectException). Unlike after
    an :class:`AuthenticationError`, a retry may succeed.
    """


class RequestTimedOutError(DisconnectedError, TimeoutError):
    """A node did not respond within ``request.timeout.ms``, and its connection was closed."""


class ResponseTooLargeError(InvalidReceiveError):
    """A response exceeds the client's ``receive.message.max.bytes``.

    The broker has carried out the request. Although the connection was closed, this is not a
    :class:`DisconnectedError`, since a retry would get the same response.

    Args:
        message: what was requested and what to do.
        size: the size of the response, in bytes.
        bytes_max: the limit.
    """

    def __init__(self, message: str, size: int, bytes_max: int) -> None:
        super().__init__(message)
        self.size = size
        self.bytes_max = bytes_max


class RecordTooLargeError(TrionetError):
    """A record exceeds a size limit of the producer or topic.

    (Kafka: RecordTooLargeException.) Unlike after a :class:`BufferExhaustedError`, a retry is
    pointless.
    """


class SendBatchError(TrionetError):
    """One or more records of a ``send_batch`` call failed; the others were delivered.

    The cause is the error of the first failed record.

    Args:
        deliveries: the deliveries of all records in the call.
        failures: the index and error of each failed record.
    """

    def __init__(
        self, deliveries: Sequence[object], failures: Sequence[tuple[int, Exception]]
    ) -> None:
        super().__init__(deliveries, failures)
        self.deliveries = deliveries
        self.failures = failures
        self.may_have_been_written: bool = any(_may_have_been_written(each) for _, each in failures)
        # Set here, because compiled code cannot use `raise ... from`.
        self.__cause__: BaseException | None = failures[0][1]

    def _text(self) -> str:
        number, error = self.failures[0]
        return (
            f"{len(self.failures)} of {len(self.deliveries)} records failed; the first has index"
            f" {number}: {error}"
        )


class UndeliveredError(TrionetError):
    """One or more records failed, and their deliveries were never awaited.

    Raised at the end of the producer's block, with the error of the first failed record as the
    cause. Unlike a :class:`SendBatchError`, it is not limited to the records of one call.

    Args:
        failures: for each combination of partition and kind of error, the topic, partition, number
            of failed records and first error; at most a hundred entries.
        records: the total number of failed records.
    """

    def __init__(self, failures: Sequence[tuple[str, int, int, Exception]], records: int) -> None:
        super().__init__(failures, records)
        self.failures = failures
        self.records = records
        self.may_have_been_written: bool = any(
            _may_have_been_written(each[-1]) for each in failures
        )
        self.__cause__: BaseException | None = failures[0][-1] if failures else None

    def _text(self) -> str:
        text = "1 record failed, and its delivery was never awaited"
        if self.records > 1:
            text = f"{self.records} records failed, and their deliveries were never awaited"
        first = self.failures[:_FAILURES_IN_TEXT]
        reasons = [
            f"{records} for {topic}-{partition}: {error}"
            for topic, partition, records, error in first
        ]
        if more := self.records - sum(records for _, _, records, _ in first):
            reasons.append(f"and {more} more")
        return f"{text}: {'; '.join(reasons)}"


#: The maximum number of failures that the message lists.
_FAILURES_IN_TEXT = 3


def _may_have_been_written(error: Exception) -> bool:
    # Another exception is a bug in the producer, after which nothing is certain.
    return bool(getattr(error, "may_have_been_written", True))


class RecordWithdrawnError(TrionetError):
    """A record was withdrawn before it was sent, because its ``send`` was cancelled."""


class CommitFailedError(TrionetError):
    """Offsets were not committed, because this consumer is no longer in the current generation.

    (Kafka: CommitFailedException.) The consumer's partitions may have been reassigned to another
    member, which resumes at the last committed offsets. Unlike after a
    :class:`RebalanceInProgressError`, retrying the commit is pointless.
    """


class RebalanceInProgressError(TrionetError):
    """Offsets were not committed, because a rebalance of the group is in progress.

    (Kafka: RebalanceInProgressException.) Request the next record to let the consumer rejoin the
    group, then retry the commit for the partitions that are still assigned to it.
    """


class FencedInstanceIdError(TrionetError):
    """Another consumer has joined the group with the same ``group.instance.id``.

    (Kafka: FencedInstanceIdException.) This consumer cannot stay in the group. Unlike after a
    :class:`CommitFailedError`, the next rebalance does not resolve the problem.

    Args:
        group_id: the id of the group.
        instance_id: the ``group.instance.id`` of both consumers.
    """

    def __init__(self, group_id: str, instance_id: str) -> None:
        super().__init__(
            f"group {group_id}: another consumer has joined with group.instance.id"
            f" {instance_id!r}; give each consumer its own, or run only one of them at a time"
        )


class BufferExhaustedError(TrionetError, TimeoutError):
    """``buffer.memory`` was full for ``max.block.ms``; the record was not accepted.

    (Kafka: BufferExhaustedException.) Records are produced faster than the brokers accept them. A
    record that is larger than the whole buffer raises :class:`RecordTooLargeError` instead.
    """


class MetadataTimeoutError(TrionetError, TimeoutError):
    """No metadata for a topic or partition arrived within ``max.block.ms``.

    (Kafka: TimeoutException.) The topic or partition does not exist, or no broker could be reached.
    Unlike with a :class:`DeliveryTimeoutError`, the record was never accepted for delivery.
    """


class DeliveryTimeoutError(TrionetError, TimeoutError):
    """A record was not acknowledged within ``delivery.timeout.ms``, and is no longer retried."""


class DeliveryAbortedError(TrionetError):
    """The producer's block failed or was cancelled before a record's outcome was known."""


class TransactionError(TrionetError):
    """The base class of the errors of transactions (KIP-1050)."""


class TransactionAbortableError(TransactionError):
    """The transaction cannot be committed; after an abort, the next one may succeed.

    (Kafka: TransactionAbortableException, CommitFailedException.) A record or the offsets of a
    consumer were rejected or not acknowledged in time, or the coordinator has lost the transaction;
    the cause is that error. The block of :meth:`.Producer.transaction` aborts the transaction by
    itself; after :meth:`.Producer.begin_transaction`, call :meth:`.Producer.abort_transaction`.
    """


class ProducerFencedError(TransactionError):
    """A newer producer uses the same ``transactional.id``.

    (Kafka: ProducerFencedException.) This producer is finished: its open transaction was aborted,
    and every further call raises this error. Only a commit that was sent several times, because its
    response was lost, may have succeeded before. Close the producer, and leave the work to the
    newer one. Brokers before Kafka 4.0 also fence the producer of a transaction that was open for
    too long; then open another producer.
    """


class TransactionOutcomeUnknownError(TransactionError, TimeoutError):
    """The coordinator did not respond to a commit within ``max.block.ms``.

    (Kafka: TimeoutException.) The transaction was or will be committed as a whole, or not at all.
    The producer continues to repeat the request until the coordinator responds, and only then
    begins the next transaction. Unlike after a :class:`TransactionAbortableError`, repeating the
    work at once might do it twice. Another call of :meth:`.Producer.commit_transaction` waits for
    the outcome.
    """


class CallTimedOutError(TrionetError, TimeoutError):
    """A call did not succeed in time, including its retries.

    (Kafka: TimeoutException.) The limit is ``default.api.timeout.ms``, and ``max.block.ms`` for a
    producer's transactions. The cause, if any, is the error of the last attempt. Unlike this error,
    :class:`RequestTimedOutError` is about a single request.
    """


class PartitionError(TrionetError):
    """A consumer cannot continue reading a partition.

    The consumer stays usable, and resumes reading the partition once the program has set its
    position, usually with ``seek``.

    Args:
        message: what was wrong, what to do.
        topic: the topic's name.
        partition: the partition's number.
        offset: the consumer's position; -1 if unknown.
    """

    def __init__(self, message: str, topic: str, partition: int, offset: int = -1) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = partition
        self.offset = offset


class CorruptRecordError(PartitionError):
    """Stored records cannot be decoded, or their checksum is wrong.

    (Kafka: CorruptRecordException.) Unlike with a :class:`WireFormatError`, the response that
    carried them was well-formed.
    """


class FetchTooLargeError(PartitionError):
    """The next record batch of a partition is larger than the client accepts.

    The cause is a :class:`ResponseTooLargeError`, by ``receive.message.max.bytes``, or a
    :class:`DecompressionLimitError`, by ``fetch.max.decompressed.bytes``. Nothing is skipped: the
    batch is read again when the next record is requested. The topic's ``max.message.bytes`` limits
    the size of batches before they are decompressed. Unlike this error,
    :class:`RecordTooLargeError` is about records being sent.

    Args:
        message: what was wrong, what to do.
        topic: the topic's name.
        partition: the partition's number.
        offset: the consumer's position.
        size: the size of the response that contains the batch, in bytes; 0 for a batch that is too
            large when it is decompressed, whose size is not known.
        bytes_max: the limit.
    """

    def __init__(
        self,
        message: str,
        topic: str,
        partition: int,
        offset: int = -1,
        size: int = 0,
        bytes_max: int = 0,
    ) -> None:
        super().__init__(message, topic, partition, offset)
        self.size = size
        self.bytes_max = bytes_max


class NoOffsetForPartitionError(PartitionError):
    """The partition has no committed offset to start at, and ``auto.offset.reset`` is ``none``."""


class OffsetOutOfRangeError(PartitionError):
    """The consumer's position is outside the log, and ``auto.offset.reset`` is ``none``."""


class LogTruncationError(PartitionError):
    """The log was truncated below the position (KIP-320), and ``auto.offset.reset`` is ``none``.

    Unlike with an :class:`OffsetOutOfRangeError`, the log may contain the offset again, with a
    different record.

    Args:
        message: what was wrong, what to do.
        topic: the topic's name.
        partition: the partition's number.
        offset: the consumer's position.
        divergent_offset: the first offset that may now hold a different record; None if unknown.
    """

    def __init__(
        self,
        message: str,
        topic: str,
        partition: int,
        offset: int = -1,
        divergent_offset: int | None = None,
    ) -> None:
        super().__init__(message, topic, partition, offset)
        self.divergent_offset = divergent_offset
