"""`python3 tests fuzz`: search for a long time for input that breaks something.

Without options of its own it runs the tests that search, and its arguments are pytest's.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fuzz.corpus import SEEDS, keep
from fuzz.engine import fetched
from fuzz.guided import ROOT, Search, Searched, StatusLine, table
from fuzz.target import NAMES, load, purpose, share

SECONDS = 600
#: Of the whole, for the property tests, where no target is named.
PROPERTIES_SHARE = 0.25

SEARCHING_TESTS = ["-m", "fuzz or hypothesis", "--hypothesis-profile=search", "--timeout=0"]
PROPERTY_TESTS = ["-q", "-m", "hypothesis", "--hypothesis-profile=round", "-p", "no:cacheprovider"]

EPILOG = """\
Without any of these options the arguments are pytest's, and the tests run that search:
properties with 5,000 examples each, and much garbage for a running broker.

targets:
"""


def main(arguments: list[str]) -> int:
    """Search; the exit status says whether nothing was found."""
    parser = _parser()
    own = {option for action in parser._actions for option in action.option_strings}
    if not own & {argument.partition("=")[0] for argument in arguments}:
        pytest = [sys.executable, "-m", "pytest", *SEARCHING_TESTS, *arguments]
        os.execv(pytest[0], pytest)
    chosen = parser.parse_args(arguments)
    names = chosen.target or list(NAMES)
    if chosen.replay is not None:
        if len(names) != 1:
            parser.error("--replay needs one --target")
        load(names[0]).run(chosen.replay.read_bytes())
        print(f"{names[0]}: nothing is wrong with this input")
        return 0
    return _search(names, chosen)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 tests fuzz",
        description="Search for input that breaks something: by the property tests, then in each"
        " target, with its kept inputs to begin with. The exit status is 1 if something was found.",
        epilog=EPILOG + "".join(f"  {name:<18} {purpose(name)}\n" for name in NAMES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--seconds", type=int, default=SECONDS, help="for all together (default %(default)s)"
    )
    parser.add_argument(
        "--target",
        action="append",
        choices=NAMES,
        metavar="NAME",
        help="search only here, and leave out the property tests; may be repeated",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help=f"put what reaches something new into {SEEDS.relative_to(ROOT)}",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="where inputs and logs are put (default: a temporary one,"
        " which stays if something was found)",
    )
    parser.add_argument(
        "--blind", action="store_true", help="change inputs at random, without atheris"
    )
    parser.add_argument(
        "--replay", type=Path, metavar="FILE", help="feed the --target this input, and no other"
    )
    return parser


def _search(names: list[str], chosen: argparse.Namespace) -> int:
    began = time.monotonic()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="trionet-fuzz-"))
    atheris = None if chosen.blind else fetched()
    how = "changing inputs at random" if atheris is None else "guided by coverage"
    print(f"fuzz: {chosen.seconds} s, {len(names)} targets, {how}", flush=True)
    are_properties_clean = chosen.target is not None or _hold_properties(chosen.seconds)
    line = StatusLine(sys.stderr)
    searched: list[Searched] = []
    for name in names:
        left = began + chosen.seconds - time.monotonic()
        seconds = max(1, round(left * share(name, names[len(searched) :])))
        search = Search(name, seconds, folder, atheris)
        one = search.run(line)
        searched.append(one)
        print(table([one]), flush=True)
        if not one.is_clean:
            _tell(one)
        elif chosen.keep:
            found = [path.read_bytes() for path in search.corpus.iterdir()]
            count = keep(load(name), found, SEEDS / name)
            print(f"{name}: {count} new inputs kept")
    finds = [one.name for one in searched if not one.is_clean]
    finds += [] if are_properties_clean else ["the property tests"]
    if not finds and chosen.folder is None:
        shutil.rmtree(folder)
    took = time.monotonic() - began
    print(f"fuzz: {took:.0f} s: {', '.join(finds) or 'nothing'} found", flush=True)
    return 1 if finds else 0


def _hold_properties(seconds: int) -> bool:
    """Run the property tests with other examples each time, until their share is used up."""
    began = time.monotonic()
    rounds = 0
    is_clean = True
    while is_clean and (not rounds or time.monotonic() - began < PROPERTIES_SHARE * seconds):
        command = [sys.executable, "-m", "pytest", *PROPERTY_TESTS]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        rounds += 1
        is_clean = not done.returncode
        if not is_clean:
            print(done.stdout, done.stderr, sep="\n")
    took = time.monotonic() - began
    print(f"{'property tests':<18} {took:>5.0f} s {rounds:>12,} rounds", flush=True)
    return is_clean


def _tell(one: Searched) -> None:
    print(one.trace)
    if one.find is not None:
        print(f"the input: {one.find}")
        print(f"once more: python3 tests fuzz --target {one.name} --replay {one.find}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("fuzz: interrupted")
