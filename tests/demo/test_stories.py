"""`python3 demo`: which stories there are, and which one is played."""

from __future__ import annotations

from pathlib import Path

import pytest
from environment import SetupFailed

from demo import __main__ as story_module
from demo.__main__ import STORIES, chosen, wants_spark
from demo.java import has_java

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
    ("story", "arguments", "java", "expected"),
    [
        ("flights", [], True, True),
        ("flights", [], False, False),
        ("flights", ["--for", "3", "--spark"], False, True),
        ("flights", ["--telemetry"], False, True),
        ("flights", ["--no-spark"], True, False),
        ("flights", ["--help"], True, False),
        ("netstrings", [], True, False),
    ],
)
def test_pyspark_is_installed_where_there_is_a_java_or_it_is_asked_for(
    story: str, arguments: list[str], java: bool, expected: bool
) -> None:
    assert expected == wants_spark(story, arguments, java=java)


def test_a_java_is_found_where_spark_looks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(0o755)
    monkeypatch.setenv("PATH", str(java.parent))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert has_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "elsewhere"))
    assert not has_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert has_java()


def _fails(extra: str) -> None:
    raise SetupFailed(f"no {extra}")


def test_a_pyspark_that_cannot_be_installed_is_told_and_missed_by_nobody_who_did_not_ask(
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
