"""docs/reference/pipeline.md says what `trionet pipeline report` takes and reports."""

from __future__ import annotations

import json
import re
from pathlib import Path

from spark.pipeline.report.samples import report_of, sample
from trionet.cli import _pipeline
from trionet.cli.completion import places
from trionet.cli.main import whole_parser
from trionet.spark.pipeline.report._charts import SERIES_MAX
from trionet.spark.pipeline.report._figures import BINS_MAX
from trionet.spark.pipeline.report._json import document
from trionet.spark.pipeline.report._queries import ANOMALIES_MAX

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/pipeline.md").read_text("utf-8")
SECTION = re.split(
    r"^## ", PAGE.partition("## `trionet pipeline report`\n")[2], flags=re.MULTILINE
)[0]


def test_the_options_are_those_of_the_command() -> None:
    by_words = {place.words: place for place in places(whole_parser())}
    report = by_words["pipeline", "report"]
    flags = {flag for option in report.options for flag in option.flags}

    assert flags - {"-h", "--help"} == set(
        re.findall(r"^\| `(--[a-z]+)[ `]", SECTION, re.MULTILINE)
    )


def test_the_fields_are_those_of_the_document() -> None:
    _, _, table = SECTION.partition("### The document\n")
    listed = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|", table, re.MULTILINE)
    names = {name.strip("` ") for row in listed for name in row.split(",")}

    assert set(json.loads(document(report_of(sample())))) == names


def test_the_limits_are_those_of_the_code() -> None:
    words = {8: "eight"}
    assert f"{BINS_MAX} steps at most" in SECTION
    assert f"of more than {words[SERIES_MAX]}" in SECTION
    assert f"At most {ANOMALIES_MAX:,} anomalies" in SECTION
    assert f"(default: {_pipeline.TOP})" in SECTION
