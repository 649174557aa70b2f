"""The page about options has all that there are, and what it says of their defaults is so."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from spark.agreement import SUITES
from trionet.errors import ConfigError
from trionet.spark.options._options import SinkOptions, SourceOptions

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "spark-options.md"
NEEDED = {"kafka.bootstrap.servers": "host:9092"}
SUBSCRIBED = NEEDED | {"subscribe": "t"}
ROW = re.compile(
    r"^\| (?P<first>[^|]+?) \| (?P<second>[^|]+?) \| (?P<third>[^|]+?) \|$", re.MULTILINE
)


def rows(title: str) -> dict[str, str]:
    """The options below a heading, and what stands for their defaults."""
    section = PAGE.read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    return {name.strip("`"): default for name, default, _ in ROW.findall(section) if name[0] == "`"}


def of_source(options: dict[str, str]) -> object:
    return SourceOptions.parse({"subscribe": "t", **options}, is_stream=True)


def names_of(parse: Callable[[dict[str, str]], object]) -> set[str]:
    """The options that there are, as the error about one that is unknown lists them."""
    with pytest.raises(ConfigError) as caught:
        parse(NEEDED | {"zzz": ""})
    listed = re.search(r"options of a \w+: (.+), and kafka\.", str(caught.value))
    assert listed is not None
    return set(listed[1].split(", "))


@pytest.mark.parametrize(("title", "parse"), [("Source", of_source), ("Sink", SinkOptions.parse)])
def test_the_page_has_every_option(title: str, parse: Callable[[dict[str, str]], object]) -> None:
    assert names_of(parse) | {"kafka.bootstrap.servers"} == set(rows(title))


def test_a_default_is_what_the_page_says() -> None:
    defaults = {
        name: default.strip("`")
        for name, default in rows("Source").items()
        if re.fullmatch(r"`[\w.-]+`", default)
    }
    # A stream has no end to be given; what a trigger has, only a stream uses.
    ending = {"endingOffsets": defaults.pop("endingOffsets")}

    for is_stream, given in [(True, defaults), (False, defaults | ending)]:
        without = SourceOptions.parse(SUBSCRIBED, is_stream=is_stream)
        assert without == SourceOptions.parse(SUBSCRIBED | given, is_stream=is_stream)
    assert len(defaults) >= 7


def test_the_page_has_what_does_not_hold_and_why() -> None:
    section = PAGE.read_text("utf-8").split("\n## What is other than in the connector\n")[1]
    found = [row for row in ROW.findall(section) if re.fullmatch("[A-Z]{2}[0-9]+", row[0])]

    assert [line for lines in SUITES.values() for line in lines if line.reason] == found
