"""Kinds of input of ``trionet decode``, and the encodings of its bytes."""

from __future__ import annotations

from enum import Enum
from typing import Final

#: Encodings of the bytes.
AUTO: Final = "auto"
HEX: Final = "hex"
BASE64: Final = "base64"
RAW: Final = "raw"
FORMATS: Final = (AUTO, HEX, BASE64, RAW)


class Kind(Enum):
    """What raw bytes contain."""

    FRAMES = "size-prefixed frames"
    BARE = "one message without a size prefix"
    BATCHES = "record batches"
