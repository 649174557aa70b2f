"""`python3 demo`: which stories there are, and which one is played."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from environment import SetupFailed

from demo import __main__ as story_module
from demo.__main__ import STORIES, chosen, main, wants_spark

DEMO = Path(__file__).resolve().parents[2] / "demo"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ("flights", [])),
        (["--speed", "max"], ("flights", ["--speed", "max"])),
        (["netstrings", "--help"], ("netstrings", ["--help"])),
        (["bridge"], ("bridge", [])),
        (["flights", "netstrings"], ("flights", ["netstrings"])),
        (["fairy tales"], ("flights", ["fairy tales"])),
    ],
)
def test_a_story_is_named_first_or_it_is_the_flights(
    arguments: list[str], expected: tuple[str, list[str]]
) -> None:
    assert expected == chosen(arguments)


@pytest.mark.parametrize(
    ("story", "arguments", "expected"),
    [
        ("flights", [], True),
        ("flights", ["--for", "3", "--spark"], True),
        ("flights", ["--telemetry"], True),
        ("flights", ["--no-spark"], False),
        ("flights", ["--no-spark", "--telemetry"], True),
        ("flights", ["--help"], False),
        ("netstrings", [], False),
        ("bridge", [], False),
    ],
)
def test_spark_runs_where_it_can_unless_it_is_declined(
    story: str, arguments: list[str], expected: bool
) -> None:
    assert expected == wants_spark(story, arguments)


def test_who_asks_for_spark_hears_that_there_is_no_java_before_anything_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JAVA_HOME", os.devnull)

    with pytest.raises(SystemExit, match="demo: there is no Java; install 17 or newer"):
        main(["--telemetry"])


def _fails(extra: str) -> None:
    raise SetupFailed(f"no {extra}")


def test_a_pyspark_that_cannot_be_installed_matters_only_where_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(story_module, "is_ready", lambda extra: False)
    monkeypatch.setattr(story_module, "prepare", _fails)

    story_module.add_spark(is_asked=False)

    assert "it goes on without PySpark: no demo,pipeline" in capsys.readouterr().err
    with pytest.raises(SetupFailed):
        story_module.add_spark(is_asked=True)


@pytest.mark.parametrize("story", STORIES)
def test_every_story_can_be_played(story: str) -> None:
    assert 'if __name__ == "__main__":' in (DEMO / f"{story}.py").read_text("utf-8")
