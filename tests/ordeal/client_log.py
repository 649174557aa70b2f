"""What the clients log meanwhile."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path


def add_log_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log", type=Path, help="a file for what the clients log meanwhile")


def log_to(path: Path | None) -> None:
    """Where brokers and requests fail on purpose warnings are no news; errors are."""
    if path is None:
        logging.basicConfig(level=logging.ERROR)
    else:
        logging.basicConfig(
            filename=path, level=logging.INFO, format="%(asctime)s %(name)s %(message)s"
        )
