"""The simulation itself: it is the same twice, it holds, and it finds what is planted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from sim import cut_short, exactly_once, first_batches
from sim.__main__ import main
from sim.outcome import Outcome
from sim.planted import BUGS, CUT_SHORT_BUGS, EXACTLY_ONCE_BUGS, planted
from sim.run import run

TESTS = Path(__file__).resolve().parent.parent
STEPS = 120
#: Of first batches: a second or two of the processor's time.
FIRST_BATCHES_SEEDS = 50
#: Of workers and members, each of which takes longer.
WORKERS_SEEDS, CUT_SHORT_SEEDS = 10, 10
#: In which a client that commits as the member that it is now doubles records, or goes back.
EXACTLY_ONCE_SEEDS = (3, 4)
#: Found so early that every run of the tests can see it; `python3 tests sim --planted all` has all.
FOUND_AT_ONCE = ["acknowledge-before-append", "skip-offset-at-roll", "unmute-too-early"]


def simulate(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "sim", *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_every_rule_holds_and_one_seed_gives_one_course_of_events() -> None:
    first, again, other = run(1, STEPS), run(1, STEPS), run(2, STEPS)

    assert ["", ""] == [first.violation, other.violation], first.tail + other.tail
    assert first.digest == again.digest
    assert first.digest != other.digest
    assert first.steps >= STEPS
    assert first.virtual_seconds > 30


@pytest.mark.slow
def test_every_rule_holds_for_our_own_clients() -> None:
    first, again = run(1, STEPS, own=True), run(1, STEPS, own=True)

    assert "" == first.violation, first.tail
    assert first.digest == again.digest


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "steps"), [(10324, 100)])
def test_what_was_found_once_is_not_there_again(seed: int, steps: int) -> None:
    """10324: a segment that retention was removing came back torn from a power cut."""
    assert "" == run(seed, steps).violation


@pytest.mark.slow
def test_no_thread_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a thread was asked for")

    monkeypatch.setattr(trio.to_thread, "run_sync", refuse)

    assert "" == run(9, 300).violation


@pytest.mark.slow
def test_another_process_that_hashes_differently_has_the_same_course_of_events() -> None:
    done = simulate(f"--steps={STEPS}", "--seed=1", "--seeds=1", "--json", PYTHONHASHSEED="1")

    [outcome] = json.loads(done.stdout)
    assert (0, "") == (done.returncode, outcome["violation"])
    assert run(1, STEPS).digest == outcome["digest"]


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND_AT_ONCE)
def test_a_planted_bug_is_found(name: str) -> None:
    with planted(name):
        assert any(run(seed, 300).violation for seed in range(2))


def changed_by(name: str) -> list[object]:
    return [vars(owner).get(attribute) for owner, attribute, _ in BUGS[name]]


@pytest.mark.parametrize("name", BUGS)
def test_what_is_planted_is_taken_out_again(name: str) -> None:
    before = changed_by(name)
    with planted(name):
        assert all(now is not was for now, was in zip(changed_by(name), before, strict=True))

    assert before == changed_by(name)


@pytest.mark.slow
def test_every_rule_holds_when_the_first_batches_of_a_producer_are_refused_or_lost() -> None:
    violations = {seed: first_batches.run(seed).violation for seed in range(FIRST_BATCHES_SEEDS)}

    assert {} == {seed: violation for seed, violation in violations.items() if violation}


@pytest.mark.slow
def test_one_seed_gives_the_same_first_batches_twice() -> None:
    first, again, other = (first_batches.run(seed) for seed in (1, 1, 2))

    assert first.digest == again.digest
    assert first.digest != other.digest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("acknowledge-refused", "was acknowledged"),
        ("infer-written", "was acknowledged"),
        ("number-retries-anew", "times"),
    ],
)
def test_a_bug_that_is_planted_in_the_producer_is_found_by_its_first_batches(
    name: str, found: str
) -> None:
    with planted(name):
        violations = (first_batches.run(seed).violation for seed in range(FIRST_BATCHES_SEEDS))

        assert any(found in violation for violation in violations)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_workers_that_are_killed_cancelled_and_stalled_copy_each_record_once() -> None:
    violations = {seed: exactly_once.run(seed).violation for seed in EXACTLY_ONCE_SEEDS}

    assert dict.fromkeys(EXACTLY_ONCE_SEEDS, "") == violations


@pytest.mark.slow
def test_no_record_that_was_cut_short_is_committed() -> None:
    violations = {seed: cut_short.run(seed).violation for seed in range(CUT_SHORT_SEEDS)}

    assert dict.fromkeys(range(CUT_SHORT_SEEDS), "") == violations


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACTLY_ONCE_BUGS)
def test_a_bug_that_is_planted_in_commits_by_transactions_is_found_by_workers(name: str) -> None:
    with planted(name):
        assert any(exactly_once.run(seed).violation for seed in range(WORKERS_SEEDS))


@pytest.mark.slow
@pytest.mark.parametrize("name", CUT_SHORT_BUGS)
def test_a_bug_that_is_planted_in_auto_commits_is_found_by_records_that_are_cut_short(
    name: str,
) -> None:
    with planted(name):
        violations = (cut_short.run(seed).violation for seed in range(CUT_SHORT_SEEDS))

        assert any("was not finished" in violation for violation in violations)


@pytest.mark.slow
@pytest.mark.parametrize("run_seed", [exactly_once.run, cut_short.run])
def test_one_seed_gives_the_same_workers_and_members_twice(
    run_seed: Callable[[int], Outcome],
) -> None:
    first, again, other = (run_seed(seed) for seed in (1, 1, 2))

    assert first.digest == again.digest
    assert first.digest != other.digest


@pytest.mark.slow
def test_a_violation_among_first_batches_reports_how_to_have_it_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with planted("acknowledge-refused"):
        status = main(["first-batches", "--seeds", str(FIRST_BATCHES_SEEDS)])
        first = capsys.readouterr().out.splitlines()
        repeated = next(line for line in first if line.startswith("repeat it: python3 tests sim "))
        main(repeated.removeprefix("repeat it: python3 tests sim ").split())

    again = capsys.readouterr().out.splitlines()
    assert 1 == status
    assert [line for line in first if line.startswith("seed ")] == [
        line for line in again if line.startswith("seed ")
    ]


@pytest.mark.slow
def test_a_violation_reports_how_to_have_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with planted("skip-offset-at-roll"):
        status = main(["--steps", "300", "--seeds", "2"])

    said = capsys.readouterr().out
    assert 1 == status
    assert "python3 tests sim --seed 0 --seeds 1 --steps 300" in said
    assert "violations" in said.splitlines()[-1]
