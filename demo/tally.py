"""What was produced, or consumed, in a form that two processes can compare: per key, how many
records there were and a digest over all their values in their order.

Equal tallies mean that every record arrived, once, unchanged, under its key and in its order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TypeAlias

#: By key: the number of records and the digest of their values.
Totals: TypeAlias = Mapping[str, tuple[int, str]]


class Tally:
    """Counts and digests records by their key."""

    def __init__(self) -> None:
        self.count = 0
        self._counts: dict[str, int] = {}
        self._digests: dict[str, hashlib.blake2b] = {}

    def add(self, key: str, value: bytes) -> None:
        if key not in self._counts:
            self._counts[key] = 0
            self._digests[key] = hashlib.blake2b(digest_size=16)
        self.count += 1
        self._counts[key] += 1
        # The length in front keeps "ab" + "c" apart from "a" + "bc".
        self._digests[key].update(len(value).to_bytes(4, "big") + value)

    def totals(self) -> dict[str, tuple[int, str]]:
        return {key: (self._counts[key], self._digests[key].hexdigest()) for key in self._counts}


def differences(produced: Totals, consumed: Totals) -> list[str]:
    """One sentence for each key whose records are not the same on both sides."""
    found = []
    for key in sorted({*produced, *consumed}):
        ours, theirs = produced.get(key, (0, "")), consumed.get(key, (0, ""))
        if ours[0] != theirs[0]:
            found.append(f"{key}: {ours[0]} records produced, {theirs[0]} consumed")
        elif ours != theirs:
            found.append(f"{key}: {ours[0]} records on both sides, but not the same ones")
    return found
