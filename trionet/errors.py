"""Every error of trionet's own, each saying which neighbour it is not.

Misuse stays ``ValueError``/``TypeError``; cancellation is never mapped to any of these. An error
that says that a limit of time has passed is a ``TimeoutError`` as well.
"""

from __future__ import annotations

TYPE_CHECKING = False  # to import it from typing takes longer than all that is loaded here

if TYPE_CHECKING:
    from collections.abc import Sequence


class TrionetError(Exception):
    """The root of everything that trionet raises by itself.

    Attributes:
        may_have_been_written: of a record that a producer took: no leader refused it for certain,
            so that it may be in the log all the same. The text says it, too.
    """

    may_have_been_written = False

    def __str__(self) -> str:
        return super().__str__() + self._doubt

    @property
    def _doubt(self) -> str:
        return "; the record may have been written" if self.may_have_been_written else ""

    def __reduce__(self) -> tuple[object, ...]:
        """What copies and pickles it; else its message would be taken for its arguments."""
        return _made_again, (type(self), self.args), self.__dict__


def _made_again(kind: type[TrionetError], args: tuple[object, ...]) -> TrionetError:
    return kind.__new__(kind, *args)


class InvalidReceiveError(TrionetError):
    """The peer announced an impossible or oversized frame (Kafka: InvalidReceiveException).

    Not a :class:`WireFormatError`: the frame's content was never looked at.
    """


class WireFormatError(TrionetError):
    """The peer's bytes do not decode; the frame that carried them was well-formed."""


class LocalProtocolError(TrionetError):
    """We were asked to do something the protocol forbids, such as a second Send on a channel.

    A bug on this side, never the peer's fault (Kafka: IllegalStateException).
    """


class UnsupportedVersionError(TrionetError):
    """Both sides are right, but share no version of the API."""


class AuthenticationError(TrionetError):
    """A peer could not prove who it is, by TLS or by SASL (Kafka: AuthenticationException).

    Not a lost connection: trying again with the same credentials fails again.
    """


class ConfigError(TrionetError, ValueError):
    """A setting has an unknown name or a value that is not allowed; says which are."""


# What is wrong with a request of megabytes is said in a text that Kafka's protocol can carry.
_API_ERROR_TEXT_MAX = 2000


class ApiError(TrionetError):
    """A request, or one partition of it, is to be answered with a Kafka error code.

    Raised inside the broker and turned into the error field of the response; it never closes
    the connection.

    Args:
        error_code: Kafka's number, see :mod:`trionet.protocol.error_codes`.
        message: what was wrong, what is allowed, what to do; a very long one is cut.
    """

    def __init__(self, error_code: int, message: str = "") -> None:
        if len(message) > _API_ERROR_TEXT_MAX:
            message = f"{message[: _API_ERROR_TEXT_MAX - 4]} ..."
        super().__init__(error_code, message)
        self.error_code = error_code
        self.message = message

    def __str__(self) -> str:
        return (self.message or f"error code {self.error_code}") + self._doubt


class DisconnectedError(TrionetError):
    """A connection to a node could not be made, or ended before the answer.

    Whether the request was carried out is not known; not an :class:`AuthenticationError`, after
    which trying again fails again (Kafka: DisconnectException).
    """


class RequestTimedOutError(DisconnectedError, TimeoutError):
    """A node did not answer within ``request.timeout.ms``, and its connection was closed for it."""


class ResponseTooLargeError(InvalidReceiveError):
    """A response is larger than the client's ``receive.message.max.bytes``.

    The broker has carried the request out. Not a :class:`DisconnectedError`, although the
    connection was closed: the same request would get the same response again.

    Args:
        message: what was requested, and what to do.
        size: of the response, in bytes.
        bytes_max: the limit.
    """

    def __init__(self, message: str, size: int, bytes_max: int) -> None:
        super().__init__(message)
        self.size = size
        self.bytes_max = bytes_max


class RecordTooLargeError(TrionetError):
    """A record will not be sent, because it exceeds a limit of the producer's or of the topic's.

    Not a full buffer, which has room later (Kafka: RecordTooLargeException).
    """


class SendBatchError(TrionetError):
    """Some records of one ``send_batch`` were not written, or nobody knows whether they were.

    The others were. Its cause is the first one's error.

    Args:
        deliveries: of all records.
        failures: the numbers of those records, and why.
    """

    def __init__(
        self, deliveries: Sequence[object], failures: Sequence[tuple[int, Exception]]
    ) -> None:
        super().__init__(deliveries, failures)
        self.deliveries = deliveries
        self.failures = failures
        self.may_have_been_written = any(_may_have_been_written(each) for _, each in failures)
        # Here, because compiled code that raises it cannot say `from`.
        self.__cause__ = failures[0][1]

    def __str__(self) -> str:
        number, error = self.failures[0]
        return (
            f"{len(self.failures)} of {len(self.deliveries)} records were not written, or nobody"
            f" knows; the first is number {number}: {error}"
        )


class UndeliveredError(TrionetError):
    """Records that a producer had taken failed, and their deliveries were not looked at.

    Raised at the end of the producer's block. Its cause is the first one's error. Not a
    :class:`SendBatchError`, which is of the records of one call.

    Args:
        failures: topic, partition, how many records, and the error of the first of them; for each
            partition and kind of error, the first hundred of these.
        records: how many there are in all.
    """

    def __init__(self, failures: Sequence[tuple[str, int, int, Exception]], records: int) -> None:
        super().__init__(failures, records)
        self.failures = failures
        self.records = records
        self.may_have_been_written = any(_may_have_been_written(each[-1]) for each in failures)
        self.__cause__ = failures[0][-1] if failures else None

    def __str__(self) -> str:
        text = "1 record failed, and its delivery was not looked at"
        if self.records > 1:
            text = f"{self.records} records failed, and their deliveries were not looked at"
        first = self.failures[:_FAILURES_IN_TEXT]
        reasons = [
            f"{records} for {topic}-{partition}: {error}"
            for topic, partition, records, error in first
        ]
        if more := self.records - sum(records for _, _, records, _ in first):
            reasons.append(f"and {more} more")
        return f"{text}: {'; '.join(reasons)}"


#: Of so many partitions and kinds of errors the text says why their records failed.
_FAILURES_IN_TEXT = 3


def _may_have_been_written(error: Exception) -> bool:
    # Of a fault in the producer itself, which is no TrionetError, nothing is certain.
    return bool(getattr(error, "may_have_been_written", True))


class RecordWithdrawnError(TrionetError):
    """A record was taken back before it was sent, because its ``send`` was cancelled."""


class CommitFailedError(TrionetError):
    """Offsets were not committed, since this consumer is not in the group's present generation.

    Its partitions may be another's by now, who begins at the last commit. Not a
    :class:`RebalanceInProgressError`: committing the same once more is no use (Kafka:
    CommitFailedException).
    """


class RebalanceInProgressError(TrionetError):
    """Offsets were not committed, since the group is dividing its partitions anew.

    Ask for the next record, which takes part in that, and commit again what you still have (Kafka:
    RebalanceInProgressException). Not a :class:`CommitFailedError`.
    """


class FencedInstanceIdError(TrionetError):
    """Another consumer has joined the group with the same ``group.instance.id``.

    This one can do no more in the group; whether the other one should be there is for people to
    find out. Not a :class:`CommitFailedError`, which may be over with the next rebalance (Kafka:
    FencedInstanceIdException).

    Args:
        group_id: the group.
        instance_id: what both call themselves.
    """

    def __init__(self, group_id: str, instance_id: str) -> None:
        super().__init__(
            f"group {group_id}: another consumer has joined as {instance_id!r}; give each consumer"
            " a group.instance.id of its own, or see that only one of them runs"
        )


class BufferExhaustedError(TrionetError, TimeoutError):
    """``buffer.memory`` had no room for a record within ``max.block.ms``; nothing was taken.

    The brokers take less than is produced. Not a record that is larger than all of it, which is a
    :class:`RecordTooLargeError` (Kafka: BufferExhaustedException).
    """


class MetadataTimeoutError(TrionetError, TimeoutError):
    """A topic, or a partition of it, was not known within ``max.block.ms``; nothing was taken.

    There is none of that name, or no broker could be asked (Kafka: TimeoutException, of which
    :class:`DeliveryTimeoutError` is the other kind).
    """


class DeliveryTimeoutError(TrionetError, TimeoutError):
    """A record was not acknowledged within ``delivery.timeout.ms``.

    It is not tried again.
    """


class DeliveryAbortedError(TrionetError):
    """The producer's block ended, by an error or by cancellation, before the outcome of a record
    was known.
    """


class CallTimedOutError(TrionetError, TimeoutError):
    """A call did not succeed within ``default.api.timeout.ms``, however often it was tried.

    Its cause is what went wrong last. Not a :class:`RequestTimedOutError`, which is of one request
    (Kafka: TimeoutException).
    """


class PartitionError(TrionetError):
    """Something is wrong with one partition that a consumer reads.

    The consumer stays as it is, and goes on with it once the user has decided where, mostly by
    ``seek``.

    Args:
        message: what was wrong, what to do.
        topic: the topic's name.
        partition: the partition's number.
        offset: where reading was; -1 if that was not known.
    """

    def __init__(self, message: str, topic: str, partition: int, offset: int = -1) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = partition
        self.offset = offset


class CorruptRecordError(PartitionError):
    """Stored records cannot be read, or their checksum is wrong (Kafka: CorruptRecordException).

    Not a :class:`WireFormatError`: the answer that carried them was well-formed.
    """


class FetchTooLargeError(PartitionError):
    """The next record batch of a partition does not fit ``receive.message.max.bytes``.

    Its cause is the :class:`ResponseTooLargeError`. Nothing was skipped: the batch is fetched again
    with the next request for a record. A batch is not larger than the topic's ``max.message.bytes``
    allows. Not a :class:`RecordTooLargeError`, which is of records that are sent.

    Args:
        message: what was wrong, what to do.
        topic: the topic's name.
        partition: the partition's number.
        offset: where reading was.
        size: of the response with that batch, in bytes.
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
    """There is no offset to begin at, and ``auto.offset.reset`` is ``none``."""


class OffsetOutOfRangeError(PartitionError):
    """The log has no such offset (any more), and ``auto.offset.reset`` is ``none``."""


class LogTruncationError(PartitionError):
    """The log was cut behind records that were read (KIP-320), and ``auto.offset.reset`` is none.

    Not an :class:`OffsetOutOfRangeError`: the offset may be there again, with another record.

    Args:
        message: what was wrong, what to do.
        topic: the topic's name.
        partition: the partition's number.
        offset: where reading was.
        divergent_offset: the first offset that may have another record now; None if nobody knows.
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
