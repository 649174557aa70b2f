"""The story of netstrings: as a user starts it, and as a protocol with rules of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo import netstrings
from demo.netstrings import NETSTRINGS, is_as_expected, read_head, reverse
from support.served import serving_with
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import ReadinessKind

ROOT = Path(__file__).resolve().parents[2]
LINES_MAX = 60
TOO_LARGE = "frame size 999999999 is larger than 104857600"
LIMIT = "the limit that socket.request.max.bytes sets"


def play(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "demo.netstrings", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.slow
def test_the_story_runs_and_ends_well() -> None:
    done = play()

    assert (0, "") == (done.returncode, done.stderr)
    assert [
        "3:one,3:two,0:, -> 3:eno,3:owt,0:, PEER_CLOSED",
        "4:good,03:bad,  -> 4:doog,         b'03' is not the size of a netstring",
        "4:what?         ->                 a frame of 4 bytes ends with b'?', not with b','",
        f"999999999:      ->                 {TOO_LARGE}, {LIMIT}",
        "8:goes on.,     -> 8:.no seog,     PEER_CLOSED",
    ] == done.stdout.splitlines()


@pytest.mark.slow
def test_the_story_takes_no_arguments() -> None:
    done = play("--speed", "max")

    assert 2 == done.returncode
    assert "python3 demo netstrings: error: unrecognized arguments" in done.stderr


async def test_a_story_that_goes_another_way_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await is_as_expected()

    monkeypatch.setattr(netstrings, "STORY", [(b"1:a,", b"1:b,", CloseReason.PEER_CLOSED)])

    assert not await is_as_expected()
    assert "1:a,            -> 1:a,            PEER_CLOSED\n" in capsys.readouterr().out


def test_a_second_dialect_fits_on_a_page() -> None:
    assert len(Path(netstrings.__file__).read_text("utf-8").splitlines()) < LINES_MAX


def whole(payload: bytes) -> bytes:
    """A short response as it is sent."""
    [chunk] = NETSTRINGS.frame(payload)
    assert isinstance(chunk, bytes)
    return chunk


@given(st.lists(st.binary(max_size=200)), st.integers(1, 50))
def test_what_is_framed_is_decoded_again(payloads: list[bytes], piece_bytes: int) -> None:
    stream = b"".join(b"%d:%b," % (len(payload), payload) for payload in payloads)
    assert stream == b"".join(map(whole, payloads))
    decoder = NETSTRINGS.decoder(200)
    for position in range(0, len(stream), piece_bytes):
        decoder.receive_data(stream[position : position + piece_bytes])

    assert payloads == list(decoder.frames)
    assert decoder.error is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"0:,", (2, 0)), (b"12:hello", (3, 12)), (b"1", None), (b"0", None), (b"123456789", None)],
)
def test_a_size_is_read_up_to_its_colon(data: bytes, expected: tuple[int, int] | None) -> None:
    assert expected == read_head(data)


@pytest.mark.parametrize(
    "data", [b":", b"x", b"-1:", b"+1:", b" 1:", b"1 :", b"01:", b"00:", b"1234567890", b"1_0:"]
)
def test_what_is_no_size_is_refused_as_soon_as_it_is_seen(data: bytes) -> None:
    with pytest.raises(ValueError, match="is not the size of a netstring"):
        read_head(data)


@pytest.fixture(params=["poller", "socket"])
def kind(request: pytest.FixtureRequest) -> ReadinessKind:
    param: ReadinessKind = request.param
    return param


@pytest.mark.parametrize("malformed", [b"x", b"01:a,", b"1:ab", b"1000000000:", b"99:", b"-1:"])
async def test_a_malformed_netstring_closes_its_connection_and_no_other(
    kind: ReadinessKind, malformed: bytes
) -> None:
    """After the responses to those before it."""
    async with serving_with(reverse, kind, dialect=NETSTRINGS, socket_request_max_bytes=98) as rig:
        other, peer = await rig.connect(), await rig.connect()
        await other.send(b"5:hel")
        await peer.send(b"2:ab,0:," + malformed)

        assert b"2:ba,0:," == await peer.receive_to_end()
        closed = await rig.last_closed()
        assert (CloseReason.INVALID_RECEIVE, 2) == (closed.reason, closed.requests)
        await other.send(b"lo,")
        assert b"5:olleh," == await other.receive(8)
        assert {CloseReason.INVALID_RECEIVE: 1} == rig.reasons()
