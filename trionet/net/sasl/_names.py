"""The names of the mechanisms, without the mechanisms: to check a setting takes no more."""

from __future__ import annotations

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"

SCRAM_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The mechanisms of SCRAM and their hash functions."""

MECHANISMS = (PLAIN, *SCRAM_HASHES, OAUTHBEARER)
"""The names of the mechanisms."""
