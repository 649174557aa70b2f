"""What came of a suite, in words and numbers."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence

import attrs

#: Of the tests that were run and are not explained, how many have to pass.
PASS_SHARE_MIN = 0.95


@attrs.frozen
class Outcome:
    """One test: its id, ``passed``, ``failed``, ``skipped`` or ``left out``, and why."""

    test: str
    outcome: str
    why: str


@attrs.frozen
class Report:
    """All tests of a suite.

    Attributes:
        name: of the suite.
        outcomes: of its tests.
        explained: why a test fails through no fault of the broker, by pattern.
    """

    name: str
    outcomes: Sequence[Outcome]
    explained: Mapping[str, str] = attrs.field(factory=dict)

    def of(self, outcome: str) -> list[Outcome]:
        return [each for each in self.outcomes if each.outcome == outcome]

    def explanation(self, test: str) -> str:
        """Why a test fails through no fault of the broker; empty if nothing is known."""
        for pattern, why in self.explained.items():
            if fnmatch.fnmatchcase(test, pattern.replace("[", "[[]")):
                return why
        return ""

    @property
    def unexplained(self) -> list[Outcome]:
        return [each for each in self.of("failed") if not self.explanation(each.test)]

    @property
    def pass_share(self) -> float:
        """Of those that passed or failed, explained or not."""
        passed, failed = len(self.of("passed")), len(self.of("failed"))
        return passed / (passed + failed) if passed + failed else 0.0

    @property
    def is_good(self) -> bool:
        return self.pass_share >= PASS_SHARE_MIN and not self.unexplained

    def lines(self) -> Iterator[str]:
        """The report, a line at a time."""
        counts = [
            f"{len(self.of(outcome))} {outcome}"
            for outcome in ("passed", "failed", "skipped", "left out")
        ]
        share = f"{self.pass_share:.1%} of those that ran passed"
        yield f"{self.name}: {', '.join(counts)}; {share}"
        yield from self._grouped("left out", "left out, for want of")
        yield from self._grouped("skipped", "skipped by the suite")
        for failed in self.of("failed"):
            yield f"  failed: {failed.test}"
            yield f"    {failed.why}"
            yield f"    {self.explanation(failed.test) or 'NOT EXPLAINED'}"

    def _grouped(self, outcome: str, title: str) -> Iterator[str]:
        by_reason: dict[str, list[str]] = {}
        for each in self.of(outcome):
            by_reason.setdefault(each.why, []).append(each.test)
        for reason, tests in by_reason.items():
            yield f"  {title}: {reason} ({len(tests)})"
            yield from (f"    {test}" for test in tests)
