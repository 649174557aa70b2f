"""API keys and error codes."""

from __future__ import annotations

from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map

from trionet.protocol import api_keys, error_codes


def constants(module: object) -> dict[str, int]:
    return {name: value for name, value in vars(module).items() if isinstance(value, int)}


def test_api_keys_are_kafkas() -> None:
    expected = {name.upper(): key for key, name in api_key_map.items()}
    removed = {
        "LEADER_AND_ISR": 4,
        "STOP_REPLICA": 5,
        "UPDATE_METADATA": 6,
        "CONTROLLED_SHUTDOWN": 7,
    }

    assert constants(api_keys) == expected | removed


def test_api_keys_have_kafkas_names() -> None:
    assert [api_keys.name_of(key) for key in (0, 2, 7, 17, 24, 74)] == [
        "Produce",
        "ListOffsets",
        "ControlledShutdown",
        "SaslHandshake",
        "AddPartitionsToTxn",
        "ListConfigResources",
    ]
    assert api_keys.name_of(1234) == "UNKNOWN(1234)"


def test_error_codes_are_kafkas() -> None:
    assert constants(error_codes) == {code.name.upper(): int(code) for code in ErrorCode}


def test_error_codes_have_kafkas_names() -> None:
    assert error_codes.name_of(error_codes.UNKNOWN_SERVER_ERROR) == "UNKNOWN_SERVER_ERROR"
    assert error_codes.name_of(0) == "NONE"
    assert error_codes.name_of(9000) == "UNKNOWN(9000)"


def test_retriable_codes_are_kafkas() -> None:
    assert {int(code) for code in ErrorCode if code.retriable} == error_codes.RETRIABLE
