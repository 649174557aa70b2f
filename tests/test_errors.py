from __future__ import annotations

import copy
import pickle

import pytest

from trionet import errors
from trionet.errors import (
    ApiError,
    ConfigError,
    CorruptRecordError,
    DecompressionLimitError,
    DeliveryTimeoutError,
    DisconnectedError,
    FencedInstanceIdError,
    FetchTooLargeError,
    LogTruncationError,
    ResponseTooLargeError,
    SendBatchError,
    TrionetError,
    UndeliveredError,
)
from trionet.protocol import error_codes

KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, TrionetError)
}

SPECIMENS = [
    ApiError(3, "no such topic"),
    ConfigError("wrong", "worse"),
    SendBatchError(["a", "b"], [(1, DisconnectedError("gone"))]),
    UndeliveredError([("t", 0, 2, DisconnectedError("gone"))], 2),
    FencedInstanceIdError("g", "i"),
    CorruptRecordError("bad", "t", 1, 7),
    DecompressionLimitError(2000),
    DeliveryTimeoutError("2 records for t-0 were not acknowledged in 120 s"),
    LogTruncationError("cut", "t", 1, 7, 5),
    ResponseTooLargeError("large", 2001, 2000),
    FetchTooLargeError("large", "t", 1, 7, 2001, 2000),
]


@pytest.mark.parametrize("error", SPECIMENS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize(
    "remade", [copy.copy, lambda each: pickle.loads(pickle.dumps(each))], ids=["copy", "pickle"]
)
def test_errors_can_be_copied_and_sent_elsewhere(error: TrionetError, remade: object) -> None:
    assert callable(remade)
    made = remade(error)

    assert type(error) is type(made)
    assert str(error) == str(made)
    assert repr(error.args[0]) == repr(made.args[0])
    assert set(vars(error)) == set(vars(made))


def test_every_error_with_arguments_of_its_own_is_a_specimen() -> None:
    own = {name for name, kind in KINDS.items() if "__init__" in vars(kind)}

    tested = {base.__name__ for each in SPECIMENS for base in type(each).__mro__}
    assert own <= tested


def test_errors_of_a_time_limit_and_no_others_are_timeout_errors() -> None:
    """Each names the setting that is its limit, in milliseconds as all of Kafka's."""
    limited = {name for name, kind in KINDS.items() if ".ms``" in (kind.__doc__ or "")}

    assert {
        "BufferExhaustedError",
        "CallTimedOutError",
        "DeliveryTimeoutError",
        "MetadataTimeoutError",
        "RequestTimedOutError",
    } <= limited
    assert limited == {name for name, kind in KINDS.items() if issubclass(kind, TimeoutError)}


def test_timeout_error_is_its_text_though_it_is_an_os_error() -> None:
    error = DeliveryTimeoutError("not acknowledged in 120 s (delivery.timeout.ms)")

    assert "not acknowledged in 120 s (delivery.timeout.ms)" == str(error)
    assert (str(error),) == error.args
    assert error.errno is None
    assert error.strerror is None
    with pytest.raises(TimeoutError, match="120 s"):
        raise error


def test_api_errors_are_retriable_as_in_kafka() -> None:
    retriable = {code for code in range(-1, 200) if ApiError(code).retriable}

    assert error_codes.RETRIABLE == retriable


FORGED = "host\r\nERROR forged\x1b[2J\x9b\u202e\ud800é"


@pytest.mark.parametrize(
    "error",
    [
        DisconnectedError(FORGED),
        DeliveryTimeoutError(FORGED),
        ApiError(3, FORGED),
        SendBatchError(["a"], [(0, OSError(FORGED))]),
        UndeliveredError([("t", 0, 1, OSError(FORGED))], 1),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_text_of_an_error_is_one_line_whoever_has_written_parts_of_it(
    error: TrionetError,
) -> None:
    assert r"host\r\nERROR forged\x1b[2J\x9b\u202e\ud800é" in str(error)
    assert str(error).isprintable()
    assert str(error) == str(pickle.loads(pickle.dumps(error)))


def test_data_of_an_error_is_what_the_peer_has_sent() -> None:
    assert FORGED == ApiError(3, FORGED).message
    assert (FORGED,) == DisconnectedError(FORGED).args
