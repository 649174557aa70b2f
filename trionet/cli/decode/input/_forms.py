"""What the bytes may be that ``trionet decode`` is given, and how they may be written."""

from __future__ import annotations

from enum import Enum
from typing import Final

#: How bytes are written.
AUTO: Final = "auto"
HEX: Final = "hex"
BASE64: Final = "base64"
RAW: Final = "raw"
FORMATS: Final = (AUTO, HEX, BASE64, RAW)


class Kind(Enum):
    """What raw bytes are."""

    FRAMES = "frames with their size in front"
    BARE = "one message without its size in front"
    BATCHES = "record batches"
