from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.dashboard.terminal._keys import (
    ESCAPE_SECONDS,
    PASTE_BYTES_MAX,
    PASTE_SECONDS,
    Attributes,
    Background,
    Event,
    Key,
    KeyDecoder,
    Mouse,
    Paste,
    Reply,
)

SEQUENCES: dict[bytes, list[Event | Reply]] = {
    b"a": [Key("a")],
    b"jk": [Key("j"), Key("k")],
    "é€😀".encode(): [Key("é"), Key("€"), Key("😀")],
    b"\r": [Key("enter")],
    b"\n": [Key("enter")],
    b"\t": [Key("tab")],
    b"\x7f": [Key("backspace")],
    b"\x08": [Key("backspace")],
    b"\x00": [Key("ctrl-space")],
    b"\x03": [Key("ctrl-c")],
    b"\x15": [Key("ctrl-u")],
    b"\x1f": [Key("ctrl-_")],
    b"\x1b[A": [Key("up")],
    b"\x1bOB": [Key("down")],
    b"\x1b[C\x1b[D": [Key("right"), Key("left")],
    b"\x1b[H": [Key("home")],
    b"\x1b[4~": [Key("end")],
    b"\x1b[5~": [Key("pageup")],
    b"\x1b[6~": [Key("pagedown")],
    b"\x1b[3~": [Key("delete")],
    b"\x1b[Z": [Key("backtab")],
    b"\x1bOP": [Key("f1")],
    b"\x1b[[B": [Key("f2")],
    b"\x1b[15~": [Key("f5")],
    b"\x1b[24~": [Key("f12")],
    b"\x1bOM": [Key("enter")],
    b"\x1b[1;2A": [Key("shift-up")],
    b"\x1b[1;5C": [Key("ctrl-right")],
    b"\x1b[1;7H": [Key("ctrl-alt-home")],
    b"\x1b[5;5~": [Key("ctrl-pageup")],
    b"\x1b[1;5:1A": [Key("ctrl-up")],
    b"\x1bx": [Key("alt-x")],
    "\x1bé".encode(): [Key("alt-é")],
    b"\x1b\x7f": [Key("alt-backspace")],
    b"\x1b[<0;1;1M": [Mouse("press", 0, 0)],
    b"\x1b[<2;300;40m": [Mouse("release", 299, 39, 2)],
    b"\x1b[<32;5;6M": [Mouse("move", 4, 5)],
    b"\x1b[<64;5;6M": [Mouse("wheel-up", 4, 5)],
    b"\x1b[<65;5;6M": [Mouse("wheel-down", 4, 5)],
    b"\x1b[<66;5;6M\x1b[<67;5;6M": [],
    b"\x1b[<128;5;6M\x1b[<129;5;6m": [],
    b"\x1b[200~two\nlines\x1b[A\x1b[201~q": [Paste("two\nlines\x1b[A"), Key("q")],
    # What nobody knows is passed over, and what follows is not.
    b"\x1b[99~a": [Key("a")],
    b"\x1b[?1;2xb": [Key("b")],
    b"\x1b]52;c;YQ==\x07b": [Key("b")],
    b"\x1b[24;80Rc": [Key("c")],  # the cursor's position, not a key with modifiers
    b"\x1b[" + b"1;" * 40 + b"Ad": [Key("d")],
    b"\x1bP1$r0m\x1b\\e": [Key("e")],
    b"\x1bP>|xterm(370)\x1b\\q": [Key("q")],
    b"\x1b_Gi=1;OK\x1b\\q": [Key("q")],
    b"\x1b]52;c;" + b"q" * 80 + b"\x1b\\f": [Key("f")],
    "\x1b]2;✓ q\x07g".encode(): [Key("g")],
    b"\x1bP1$r\x1b[A": [Key("up")],
    b"\x1bPx": [Key("alt-P"), Key("x")],
    # X10 mouse reports: a click on column 81, where every byte is a letter; one on column 168.
    b"\x1b[M qqj": [Mouse("press", 80, 80), Key("j")],
    b"\x1b[M \xc8!k": [Mouse("press", 167, 0), Key("k")],
    b"\x1b[M#!!\x1b[M`!!": [Mouse("release", 0, 0, 3), Mouse("wheel-up", 0, 0)],
    b"\x1b[M@!!": [Mouse("move", 0, 0)],
    b"\x1b[Ma\x03": [Key("a"), Key("ctrl-c")],
    # Replies: the background in one to four digits, and the attributes.
    b"\x1b]11;rgb:ffff/8000/0000\x1b\\": [Background((255, 127, 0))],
    b"\x1b]11;rgb:1e/1E/2e\x07q": [Background((30, 30, 46)), Key("q")],
    b"\x1b]11;rgba:f/f/f/f\x1b\\\x1b[?62;4c": [Background((255, 255, 255)), Attributes()],
    b"\x1b]x": [Key("alt-]"), Key("x")],
    b"\x1b[12\x1b[A": [Key("up")],
    b"\x1b[<0;1M\x1bOQ": [Key("f2")],
    b"\xffc": [Key("c")],
    b"\xe2\x28d": [Key("("), Key("d")],
}


def fed(*pieces: bytes) -> list[Event | Reply]:
    decoder = KeyDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    assert decoder.wait_seconds is None
    return events


@pytest.mark.parametrize("sequence", SEQUENCES, ids=repr)
def test_what_terminals_send(sequence: bytes) -> None:
    assert SEQUENCES[sequence] == fed(sequence)


@pytest.mark.parametrize("sequence", SEQUENCES, ids=repr)
def test_it_may_come_in_any_pieces(sequence: bytes) -> None:
    for first, second in combinations(range(len(sequence) + 1), 2):
        pieces = sequence[:first], sequence[first:second], sequence[second:]

        assert SEQUENCES[sequence] == fed(*pieces)


@given(st.lists(st.binary(max_size=12) | st.sampled_from(sorted(SEQUENCES)), max_size=8))
def test_no_input_breaks_it_and_pieces_do_not_matter(pieces: list[bytes]) -> None:
    whole, cut = KeyDecoder(), KeyDecoder()

    at_once = whole.feed(b"".join(pieces)) + whole.flush()
    in_pieces = [event for piece in pieces for event in cut.feed(piece)] + cut.flush()

    assert at_once == in_pieces
    assert whole.wait_seconds is None


@given(st.binary(max_size=40))
def test_after_any_garbage_and_a_pause_keys_work(garbage: bytes) -> None:
    decoder = KeyDecoder()
    decoder.feed(garbage)
    decoder.flush()

    assert [Key("q")] == decoder.feed(b"q")


def test_an_escape_is_a_key_when_nothing_follows() -> None:
    decoder = KeyDecoder()

    assert [] == decoder.feed(b"\x1b")
    assert ESCAPE_SECONDS == decoder.wait_seconds
    assert [Key("esc")] == decoder.flush()
    assert decoder.wait_seconds is None


def test_an_escape_before_a_sequence_is_a_key() -> None:
    assert [Key("esc"), Key("up")] == fed(b"\x1b\x1b[A")


@pytest.mark.parametrize(
    ("begun", "key"),
    [(b"\x1b[", "alt-["), (b"\x1bO", "alt-O"), (b"\x1bP", "alt-P"), (b"\x1b]", "alt-]")],
)
def test_what_only_looked_like_a_sequence_is_a_key(begun: bytes, key: str) -> None:
    decoder = KeyDecoder()
    decoder.feed(begun)

    assert [Key(key)] == decoder.flush()


def test_a_paste_that_never_ends_ends_after_a_pause() -> None:
    decoder = KeyDecoder()

    assert [] == decoder.feed(b"\x1b[200~abc")
    assert PASTE_SECONDS == decoder.wait_seconds
    assert [Paste("abc")] == decoder.flush()
    assert [Key("q")] == decoder.feed(b"q")


def test_of_a_huge_paste_the_first_part_is_kept() -> None:
    events = fed(b"\x1b[200~", b"a" * PASTE_BYTES_MAX, b"b" * 100, b"\x1b[201~")

    assert [Paste("a" * PASTE_BYTES_MAX)] == events


@pytest.mark.parametrize("begin", [b"\x1b[", b"\x1b]", b"\x1bP", b"\x1b_"])
def test_a_sequence_that_never_ends_ends_after_a_pause_without_having_been_a_key(
    begin: bytes,
) -> None:
    decoder = KeyDecoder()

    assert [] == decoder.feed(begin + b"1;" * 2000)
    assert decoder.wait_seconds is not None
    assert [] == decoder.flush()
    assert [Key("q")] == decoder.feed(b"q")


def test_a_long_string_in_many_pieces_is_skipped_up_to_its_end() -> None:
    pieces = [b"\x1b]52;c;", *[b"q" * 1000] * 100, b"\x07y"]

    assert [Key("y")] == fed(*pieces)
