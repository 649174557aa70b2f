"""What is loaded before the first frame, and before the first topics: each module takes its time.

A first frame is on the screen half a second after the start at the latest, of which trio takes
half.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.processes import SAME_TRIONET

pytestmark = pytest.mark.slow


def loaded_by(*modules: str) -> set[str]:
    program = f"import {', '.join(modules)}, sys; print(*sys.modules, sep='\\n')"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=SAME_TRIONET, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_first_frame_needs_no_client() -> None:
    loaded = loaded_by(
        "trionet.cli._dashboard",
        "trionet.dashboard._app",
        "trionet.dashboard._once",
        "trionet.dashboard.sources._open_source",
    )

    assert "trionet.dashboard.ui._screen" in loaded
    assert not {name for name in loaded if name.startswith(("trionet.client", "trionet.protocol"))}
    # Much of rich is slow to load, and not needed for lines.
    assert not loaded & {"rich.console", "rich.table", "rich.live", "h11", "sqlite3"}


def test_a_cluster_is_read_without_what_is_read_elsewhere() -> None:
    loaded = loaded_by("trionet.dashboard.sources._cluster_source")

    assert "trionet.client.admin._calls" in loaded
    assert not {name for name in loaded if name.startswith("trionet.client.consumer")}
    others = ("acls", "admin", "configs", "log_dirs", "partitions", "topics", "transactions")
    assert not loaded & {f"trionet.client.admin.{name}" for name in others}
