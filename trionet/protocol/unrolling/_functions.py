"""The functions of one message in one version: its codec, and those for its tag sections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ._decoding import Decoder
from ._encoding import Encoder
from ._layout import Struct
from ._source import Formats

#: What precedes functions that are not checked in.
PREAMBLE: Final = "from __future__ import annotations\n\nfrom struct import Struct"

#: Names a function, given its base name, signature and body.
Define = Callable[[str, str, str], str]


def unroll(layout: Struct, side: str, formats: Formats, define: Define) -> tuple[str, str]:
    """Write the functions of a message, and return the names of its decoder and its encoder.

    Args:
        layout: the layout of the message.
        side: ``request``, ``response``, or ``data`` for a message within another one.
        formats: collects the formats that the functions use.
        define: called for each function, before those that call it; returns its name.
    """
    is_request = side == "request"
    limit = "RESPONSE_ELEMENTS_MAX" if side == "response" else "REQUEST_ELEMENTS_MAX"
    readers: dict[str, str] = {}
    writers: dict[str, str] = {}
    for struct in layout.inner_first():
        if not struct.tagged:
            continue
        readers[struct.name] = define(
            f"read_tags_{struct.name}",
            f"(target: {struct.name}, buf: bytes | bytearray, pos: int, count: int, left: int)"
            " -> tuple[int, int]",
            Decoder(formats, readers).tag_section(struct),
        )
        writers[struct.name] = define(
            f"write_tags_{struct.name}",
            f"(target: {struct.name}, out: list[Sized]) -> None",
            Encoder(formats, is_request, writers).tag_section(struct),
        )
    decode = define(
        f"decode_{side}",
        f"(buf: bytes | bytearray, pos: int, left: int = {limit}) -> {layout.name}",
        Decoder(formats, readers).message(layout),
    )
    encode = define(
        f"encode_{side}",
        f"(message: {layout.name}, out: list[Sized]) -> None",
        Encoder(formats, is_request, writers).message(layout),
    )
    return decode, encode


def source_of(layout: Struct, side: str, known: set[str]) -> str:
    """Return the source of a module with the functions of a message.

    Its decoder is named ``decode_`` and its encoder ``encode_`` plus the side.

    Args:
        layout: the layout of the message.
        side: see :func:`unroll`.
        known: the names of formats that the module need not define.
    """
    formats = Formats()
    functions: list[str] = []

    def define(name: str, signature: str, body: str) -> str:
        functions.append(f"def {name}{signature}:\n{body}\n")
        return name

    unroll(layout, side, formats, define)
    return "\n\n".join([PREAMBLE, "\n".join(formats.definitions(known)), *functions])
