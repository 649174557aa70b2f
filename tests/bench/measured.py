"""What a benchmark found: figures of several sides, medians of interleaved runs, and ratios."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterator, Sequence

import attrs
from rich.console import Console
from rich.table import Table

import trionet

OURS = "trionet"


@attrs.frozen
class Figure:
    """One kind of figure: its key in a run, its heading, how it is printed."""

    key: str
    heading: str
    shown: Callable[[float], str] = "{:,.0f}".format


def machine() -> str:
    """The machine in a line: absolute figures mean nothing without it."""
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()} {platform.machine()}, "
        f"{platform.python_implementation()} {platform.python_version()}"
    )


def build() -> str:
    """What of trionet is measured: what users get who have a C compiler, or who have none."""
    return "trionet compiled" if trionet.is_compiled() else "trionet in pure Python"


@attrs.define
class Measured:
    """The runs of one benchmark.

    Attributes:
        title: what was measured, in one line.
        figures: the columns; ratios are taken of the first.
        runs: the figures of each run, by case and side.
        skipped: sides that could not take part, with the reason.
    """

    title: str
    figures: Sequence[Figure]
    runs: dict[tuple[str, str], list[dict[str, float]]] = attrs.field(factory=dict)
    skipped: dict[str, str] = attrs.field(factory=dict)

    def add(self, case: str, side: str, figures: dict[str, float]) -> None:
        """Keep one run of a side."""
        self.runs.setdefault((case, side), []).append(figures)

    def median(self, case: str, side: str, key: str) -> float:
        """The median of one figure over a side's runs."""
        return statistics.median(run[key] for run in self.runs[case, side])

    def sides(self, case: str | None = None) -> list[str]:
        """The sides that took part (in one case)."""
        return list(dict.fromkeys(s for c, s in self.runs if case in {None, c}))

    def _by_case(self) -> list[tuple[str, str]]:
        cases = list(dict.fromkeys(case for case, _ in self.runs))
        return sorted(self.runs, key=lambda case_and_side: cases.index(case_and_side[0]))

    def ratios(self) -> Iterator[tuple[str, str, str, float]]:
        """Case, a side of ours, another side, and ours divided by the other's."""
        key = self.figures[0].key
        for case, other in self._by_case():
            theirs = self.median(case, other, key)
            for our in self.sides(case):
                if our.startswith(OURS) and not other.startswith(OURS) and theirs:
                    yield case, our, other, self.median(case, our, key) / theirs

    def as_values(self) -> dict[str, object]:
        """All runs, medians, ratios and skips, as JSON can carry them."""
        return {
            "title": self.title,
            "machine": machine(),
            "build": build(),
            "cases": [
                {
                    "case": case,
                    "side": side,
                    "median": {
                        key: self.median(case, side, key) for key in self.runs[case, side][0]
                    },
                    "runs": self.runs[case, side],
                }
                for case, side in self._by_case()
            ],
            "ratios": [
                {"case": case, "figure": self.figures[0].key, "of": our, "to": to, "ratio": ratio}
                for case, our, to, ratio in self.ratios()
            ],
            "skipped": self.skipped,
        }

    def as_markdown(self) -> str:
        """The medians as a table for a page, with the machine below it."""
        rows = [
            ["case", "side", *(figure.heading for figure in self.figures)],
            ["---", "---", *("--:" for _ in self.figures)],
        ]
        for case, side in self._by_case():
            cells = [f.shown(self.median(case, side, f.key)) for f in self.figures]
            rows.append([case, side, *cells])
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        return f"{table}\n\nMeasured: {self.title};\n{build()}; {machine()}."

    def show(self, console: Console) -> None:
        """Print the medians as a table, then what was skipped and why."""
        ours = [side for side in self.sides() if side.startswith(OURS)]
        compared = ours if len(self.sides()) > len(ours) else []
        ratio_of = f"ratios of: {self.figures[0].heading}; " if compared else ""
        caption = f"{ratio_of}{build()}; {machine()}"
        table = Table(title=self.title, caption=caption, title_justify="left")
        table.add_column("case", no_wrap=True)
        table.add_column("side", no_wrap=True)
        for heading in (*(f.heading for f in self.figures), *(f"{our} ÷ this" for our in compared)):
            table.add_column(heading, justify="right")
        ratios = {(case, our, other): ratio for case, our, other, ratio in self.ratios()}
        last = None
        for case, side in self._by_case():
            if last not in {None, case}:
                table.add_section()
            cells = [f.shown(self.median(case, side, f.key)) for f in self.figures]
            ratio_cells = [ratios.get((case, our, side)) for our in compared]
            table.add_row(
                "" if case == last else case,
                side,
                *cells,
                *("" if ratio is None else f"{ratio:.2f}" for ratio in ratio_cells),
            )
            last = case
        console.print(table)
        for side, reason in self.skipped.items():
            console.print(f"skipped {side}: {reason}", markup=False, highlight=False)
