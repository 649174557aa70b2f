"""`python3 tests network-mutants`: change the network layer, and see that a test notices."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import attrs
import trio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from network_mutants.mutants import Mutant, complaints, load
from network_mutants.run import Outcome, Verdict, run, run_unmutated

JOBS = 2

Told = Callable[[Outcome], None]


def main(arguments: list[str]) -> int:
    """Run mutants; the exit status is 1 if one survives, cannot be run, or proves nothing."""
    chosen = _parser().parse_args(arguments)
    mutants = _chosen(chosen.names)
    if not mutants:
        print("no mutant has such a name", file=sys.stderr)
        return 2
    if chosen.list:
        for each in mutants:
            print(f"{each.name}: {each.why}")
        return 0
    outcomes: list[Outcome] = []
    wrong = "; ".join(complaints(mutants))
    if not wrong:
        wrong, outcomes = trio.run(_run, mutants, chosen.jobs, chosen.json)
    if chosen.json:
        found = [{**attrs.asdict(each), "verdict": each.verdict.value} for each in outcomes]
        print(json.dumps({"wrong": wrong, "mutants": found}, indent=1))
    else:
        report(wrong, outcomes)
    return 1 if wrong or _alive(outcomes) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 tests network-mutants",
        description="Change one text of the network layer at a time, in a copy of the package, and"
        " run the tests that are nearest to it. The exit status is 1 if they pass all the same.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="only these mutants; may hold * and ?"
    )
    parser.add_argument(
        "--jobs", type=int, default=JOBS, help="how many at a time (default %(default)s)"
    )
    parser.add_argument("--list", action="store_true", help="print what there is, and run nothing")
    parser.add_argument("--json", action="store_true", help="print the outcome for programs")
    return parser


def _chosen(names: Sequence[str]) -> list[Mutant]:
    patterns = names or ["*"]
    return [each for each in load() if any(fnmatchcase(each.name, one) for one in patterns)]


def _alive(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [each for each in outcomes if each.verdict in (Verdict.SURVIVED, Verdict.INVALID)]


async def _run(mutants: list[Mutant], jobs: int, is_quiet: bool) -> tuple[str, list[Outcome]]:
    console = Console(stderr=True)
    if is_quiet or not console.is_terminal:

        def tell(outcome: Outcome) -> None:
            if not is_quiet:
                print(_line(outcome), flush=True)

        return await run_all(mutants, jobs, tell)
    columns = (TextColumn("mutants"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(mutants))

        def advance(outcome: Outcome) -> None:
            progress.advance(task)
            if outcome.verdict in (Verdict.SURVIVED, Verdict.INVALID):
                progress.console.print(_line(outcome), markup=False)

        return await run_all(mutants, jobs, advance)


async def run_all(mutants: list[Mutant], jobs: int, tell: Told) -> tuple[str, list[Outcome]]:
    """Run the tests without a mutant, and then each mutant, several at a time.

    Returns:
        What is wrong with the run itself, and the outcomes in the order of the mutants.
    """
    wrong = await run_unmutated(mutants)
    if wrong:
        return wrong, []
    outcomes: dict[str, Outcome] = {}
    waiting = iter(mutants)

    async def work() -> None:
        for mutant in waiting:
            outcomes[mutant.name] = await run(mutant)
            tell(outcomes[mutant.name])

    async with trio.open_nursery() as nursery:
        for _ in range(jobs):
            nursery.start_soon(work)
    return "", [outcomes[each.name] for each in mutants]


def _line(outcome: Outcome) -> str:
    return f"{outcome.verdict.value:<14}{outcome.name} ({outcome.seconds:.0f} s): {outcome.detail}"


def report(wrong: str, outcomes: Sequence[Outcome]) -> None:
    """Print the figures, and what nothing has noticed."""
    if wrong:
        print(wrong)
        return
    alive = _alive(outcomes)
    if alive:
        print()
    for each in alive:
        print(_line(each))
    counts = [f"{sum(each.verdict is one for each in outcomes)} {one.value}" for one in Verdict]
    print(f"{len(outcomes)} mutants: {', '.join(counts)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
