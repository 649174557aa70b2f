"""The story of the bridge between Jafka and Kafka, as a user starts it, and that it can fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from demo import bridge

ROOT = Path(__file__).resolve().parents[2]
LINES_MAX = 150


def play(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "demo.bridge", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.slow
def test_the_story_runs_and_ends_well() -> None:
    done = play()

    assert (0, "") == (done.returncode, done.stderr)
    lines = done.stdout.splitlines()
    assert "the bridge copies orders from offset 0 on" == lines[0]
    assert "500 receipts are in Jafka" == lines[1]
    # Where it was stopped: after the first half, each order of which takes a head and a text.
    assert (
        f"the bridge copies orders from offset {sum(10 + len(o) for o in bridge.ORDERS[:500])} on"
        == lines[2]
    )
    assert "1000 receipts are in Jafka" == lines[3]


@pytest.mark.slow
def test_the_story_takes_no_arguments() -> None:
    done = play("--speed", "max")

    assert 2 == done.returncode
    assert "python3 demo bridge: error: unrecognized arguments" in done.stderr


async def test_a_story_that_goes_another_way_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bridge, "RECEIPTS", bridge.RECEIPTS[::-1])

    assert not await bridge.is_as_expected()


def test_the_bridge_is_short() -> None:
    assert len(Path(bridge.__file__).read_text("utf-8").splitlines()) < LINES_MAX
