"""The mutants can be run, and a run tells what became of them."""

from __future__ import annotations

import attrs
import pytest

from network_mutants.mutants import ROOT, Mutant, bearers, complaints, load
from network_mutants.run import Observed, Verdict, judge, run, selections

TEST = "net/test_memory_pool.py::test_a_lease_is_given_back_once"
MUTANT = Mutant(
    name="pool-takes-a-lease-twice",
    file="net/wire/_memory_pool.py",
    find="        lease.pool = None\n",
    replace="",
    why="memory out of nothing",
    tests=["net/test_memory_pool.py"],
    lines=["F8"],
)


def test_every_mutant_changes_one_text_of_the_package() -> None:
    """What is changed here is to be changed there, too: a mutant is never left out silently."""
    mutants = load()

    assert [] == complaints(mutants)
    assert len(mutants) >= 60


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"find": "no such text"}, "has the text that pool-takes-a-lease-twice changes 0 times"),
        ({"find": "self"}, "times"),
        ({"replace": "    lease ="}, "invalid syntax"),
        ({"replace": MUTANT.find}, "it changes nothing"),
        ({"file": "net/no_such_file.py"}, "No such file"),
        ({"tests": [], "lines": []}, "no tests are named"),
        ({"tests": [*MUTANT.tests, "net/test_none.py"]}, "there is no net/test_none.py"),
        ({"tests": [*MUTANT.tests, "net/test_memory_pool.py::test_x"]}, "there is no net/test"),
        ({"lines": ["F1"]}, "no test that is named bears F1"),
    ],
)
def test_what_makes_no_sense_is_complained_about(
    changes: dict[str, object], complaint: str
) -> None:
    [found] = complaints([attrs.evolve(MUTANT, **changes)])  # type: ignore[arg-type]

    assert found.startswith(f"{MUTANT.name}: ")
    assert complaint in found


def test_a_name_is_for_one_mutant() -> None:
    assert [f"{MUTANT.name}: several have this name"] == complaints([MUTANT, MUTANT])


def test_each_conformance_line_is_to_fail_by_tests_of_its_own() -> None:
    lines = attrs.evolve(MUTANT, tests=["net"], lines=["F8", "S26"])

    assert [bearers("F8"), bearers("S26")] == selections(lines)
    assert [MUTANT.tests] == selections(attrs.evolve(MUTANT, lines=[]))


@pytest.mark.parametrize(
    ("observed", "verdict"),
    [
        (Observed(0, passed=3), Verdict.SURVIVED),
        (Observed(1, [f"{TEST}[1]"]), Verdict.KILLED),
        (Observed(1, running=TEST), Verdict.HANG),
        (Observed(None), Verdict.HANG),
        (Observed(1, output="ERROR collecting"), Verdict.INVALID),
        (Observed(4, output="no such plugin"), Verdict.INVALID),
        (Observed(5, output="no tests ran"), Verdict.INVALID),
    ],
)
def test_a_failure_or_a_hang_kills_a_mutant(observed: Observed, verdict: Verdict) -> None:
    assert verdict is judge(observed)[0]


@pytest.mark.slow
async def test_a_run_imports_the_mutant_and_leaves_the_package_as_it_is() -> None:
    path = ROOT / "trionet" / MUTANT.file
    before = path.read_bytes()

    outcome = await run(MUTANT)

    assert Verdict.KILLED is outcome.verdict
    assert "given_back_once" in outcome.detail
    assert before == path.read_bytes()
