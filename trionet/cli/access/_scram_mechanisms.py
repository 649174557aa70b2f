"""The mechanisms of SCRAM by their names."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from trionet.client.admin.access._scram_credentials import ScramMechanism

NAMES: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def add_mechanism_argument(parser: argparse.ArgumentParser) -> None:
    """Describe ``--mechanism``."""
    parser.add_argument(
        "-m",
        "--mechanism",
        choices=NAMES,
        default=NAMES[1],
        help=f"for which mechanism (default: {NAMES[1]})",
    )


def mechanism(name: str) -> ScramMechanism:
    """By its name."""
    from trionet.client.admin.access._scram_credentials import ScramMechanism

    return ScramMechanism[name.replace("-", "_")]
