from __future__ import annotations

import pytest

from demo.lines import group_line, plain_line, size, summary
from support.demo_figures import FIGURES
from trionet import open_broker


def test_a_plain_line_holds_every_figure() -> None:
    actual = plain_line(FIGURES)

    assert (
        "  3.0 s  2013-07-02 17:05  produced 2699 (912/s)  consumed 2690 (911/s)  lag 9"
        "  committed 1801 (lag 898)"
        "  requests/s: Produce 252  Fetch 217  in 215.6 kB/s  out 218 B/s"
        "  connections 3  loop idle 89%  request queue 0"
    ) == actual


def test_a_group_is_reported_with_the_partitions_of_each() -> None:
    figures = FIGURES._replace(members={"consumer-1": [0, 2], "consumer-2": []})

    assert (
        "group of 2, generation 5: consumer-1 reads 0, 2; consumer-2 reads nothing"
    ) == group_line(figures)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (31_400_000, "31.4 MB"),
        (5e12, "5000.0 GB"),
    ],
)
def test_a_size_is_reported_in_a_fitting_unit(count: float, text: str) -> None:
    assert text == size(count)


async def test_the_summary_ends_with_the_verdict() -> None:
    async with open_broker() as broker:
        statistics = broker.statistics()

    *_, good = summary(FIGURES, statistics, [], 15)
    *_, reason, bad = summary(FIGURES, statistics, ["UA: 2 records produced, 1 consumed"], 15)

    assert "Verdict: consumed == produced, record by record, for all 15 carriers." == good
    assert "UA: 2 records produced, 1 consumed" == reason
    assert "Verdict: FAILED, what was consumed is not what was produced." == bad
