"""A report as a page: it needs nothing else, and what clients wrote is text in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import attrs

from spark.pipeline.report.samples import HOSTILE, minute, report_of, sample
from spark.pipeline.results_folder import requests
from trionet.spark.pipeline.report._charts import SERIES_MAX
from trionet.spark.pipeline.report._page import SERIES, STYLE, page

NOW = minute(60)
EMPTY = {"meta"}
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "figure"),
    *("figcaption", "ul", "li", "span", "table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "g", "line", "path", "rect", "circle", "text"),
}


class Reader(HTMLParser):
    """What is in a page, as a browser sees it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.texts: list[str] = []
        self.cells: list[tuple[str, dict[str, Any]]] = []
        self.cell_texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in EMPTY:
            self.open.append(tag)
        if tag in {"th", "td"}:
            self.cells.append((tag, dict(attributes)))
            self.cell_texts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open and self.open[-1] in {"th", "td"}:
            self.cell_texts[-1] += data


TEXT = page(report_of(sample()), 10, NOW)
PAGE = Reader(TEXT)


def test_a_page_is_whole_and_of_tags_that_do_nothing() -> None:
    assert TEXT.startswith("<!doctype html>\n")
    assert [] == PAGE.open
    assert {tag for tag, _ in PAGE.tags} <= TAGS


def test_a_page_fetches_nothing_and_runs_nothing() -> None:
    for _, attributes in PAGE.tags:
        assert not {"href", "src", "srcset", "style"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import|https?://", TEXT)
    policy = [each for _, each in PAGE.tags if each.get("http-equiv") == "Content-Security-Policy"]
    assert ["default-src 'none'; style-src 'unsafe-inline'"] == [each["content"] for each in policy]


def test_what_clients_call_themselves_is_text_and_nothing_that_turns_other_text() -> None:
    report = report_of(sample())
    anomalies = [attrs.evolve(report.anomalies[0], client_id=HOSTILE, api=HOSTILE)]
    hostile = attrs.evolve(
        report,
        folder=HOSTILE,
        anomalies=anomalies,
        apis=[attrs.evolve(report.apis[0], name=HOSTILE)],
        timeline=attrs.evolve(report.timeline, requests={HOSTILE: [1.0] * 10}),
    )

    text = page(hostile, 10, NOW)

    found = Reader(text)
    assert {tag for tag, _ in found.tags} <= TAGS
    assert "\x1b" not in text
    assert "\u202e" not in text
    shown = "<script>alert(1)</script>[bold]x[/nope]\\u001b[2J\\u0007\\u202egpj"
    assert 4 <= sum(shown in each for each in found.texts)


def test_a_page_has_all_charts() -> None:
    titles = [each.get("aria-label") for tag, each in PAGE.tags if tag == "svg"]

    assert [
        "Requests per second by API",
        "Total time of all requests",
        "p99 of total time by API",
        "Distribution of total time",
        "Errors",
        "Where the time goes, on average",
    ] == titles


def test_anomalies_are_marked_in_every_chart_over_time() -> None:
    assert 5 * 2 == sum(each.get("class") == "mark" for _, each in PAGE.tags)
    said = "Produce of shop: p99 of total 9.00 ms, expected 1.00 µs"
    assert 5 * 2 == sum(said in text for text in PAGE.texts)


def test_a_page_has_the_tables_too() -> None:
    assert {
        "APIs",
        "Top talkers",
        "Errors",
        "Closed connections",
        "Quota pressure",
        "Anomalies",
    } <= (set(PAGE.texts))
    assert "1,025" in PAGE.texts


def test_incidents_come_first_of_all_tables_and_before_the_charts() -> None:
    titles = [
        text for text in PAGE.texts if text in {"Incidents", "Over time", "APIs", "Anomalies"}
    ]

    # "Incidents" and "Anomalies" are also rows of the overview.
    assert ["Incidents", "Anomalies", "Incidents", "Over time", "APIs", "Anomalies"] == titles


def test_dates_and_numbers_stay_on_one_line_and_words_are_not_broken() -> None:
    whole_lines = [
        text
        for (tag, attributes), text in zip(PAGE.cells, PAGE.cell_texts, strict=True)
        if tag == "td" and attributes.get("class") in {"number", "time"}
    ]

    assert ".number,.time{white-space:nowrap}" in STYLE
    assert {"2026-03-01 12:02 UTC", "9.00 ms"} <= set(whole_lines)
    # "anywhere" lets a column be as narrow as one character.
    assert "overflow-wrap:anywhere" not in STYLE.partition("table{")[2]


def test_more_apis_than_colours_are_reported_together() -> None:
    rows = [requests(minute(0), [5] * (20 - key), api=(key, f"Api{key}")) for key in range(12)]

    found = Reader(page(report_of({"requests": rows}), 10, NOW))

    assert "others" in found.texts
    assert f"f{SERIES_MAX}" not in {each.get("class") for _, each in found.tags}
    [others] = [text for text in found.texts if text.startswith("others, ")]
    assert others.endswith(f": {sum(20 - key for key in range(SERIES_MAX - 1, 12)) / 60:.3f}/s")


def test_there_is_a_colour_for_each_series_in_light_and_in_dark() -> None:
    assert SERIES_MAX == SERIES
    light, dark = STYLE.split("@media (prefers-color-scheme:dark)")
    for number in range(SERIES):
        assert 1 == light.count(f"--c{number}:")
        assert 1 == dark.count(f"--c{number}:")
        assert f".s{number}{{stroke:var(--c{number})}}" in dark
