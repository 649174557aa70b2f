"""`python3 demo`: which stories there are, and which one is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.__main__ import STORIES, chosen, extras

DEMO = Path(__file__).resolve().parents[2] / "demo"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ("flights", [])),
        (["--speed", "max"], ("flights", ["--speed", "max"])),
        (["netstrings", "--help"], ("netstrings", ["--help"])),
        (["flights", "netstrings"], ("flights", ["netstrings"])),
        (["fairy tales"], ("flights", ["fairy tales"])),
    ],
)
def test_a_story_is_named_first_or_it_is_the_flights(
    arguments: list[str], expected: tuple[str, list[str]]
) -> None:
    assert expected == chosen(arguments)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [([], "demo"), (["--no-spark"], "demo"), (["--for", "3", "--spark"], "demo,spark")],
)
def test_pyspark_is_installed_for_those_who_ask_for_it(arguments: list[str], expected: str) -> None:
    assert expected == extras(arguments)


@pytest.mark.parametrize("story", STORIES)
def test_every_story_can_be_played(story: str) -> None:
    assert 'if __name__ == "__main__":' in (DEMO / f"{story}.py").read_text("utf-8")
