"""One target, one process: searches until its time is up, or until something breaks.

Started by `guided.py`, which reads what is written here. The exit status is 0 if
nothing was found; the input that broke something is a file then.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from fuzz.blind import search
from fuzz.guided import ROOT
from fuzz.target import load, watched

#: How long one input may take. Most take less than a millisecond.
RUN_SECONDS_MAX = 20
MEMORY_MIB_MAX = 2048


def main(arguments: list[str]) -> None:
    """Search; does not return from a guided search."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("seconds", type=int)
    for folder in ("corpus", "seeds", "finds"):
        parser.add_argument(folder, type=Path)
    parser.add_argument("--blind", action="store_true")
    chosen = parser.parse_args(arguments)
    if not chosen.blind:
        search_guided(chosen.name, chosen.seconds, chosen.corpus, chosen.seeds, chosen.finds)
    target = load(chosen.name)
    inputs = [path.read_bytes() for path in sorted(chosen.seeds.iterdir())]
    find = search(target, inputs, chosen.seconds, RUN_SECONDS_MAX, chosen.finds)
    sys.exit(0 if find is None else 1)


def search_guided(name: str, seconds: int, corpus: Path, seeds: Path, finds: Path) -> None:
    """Let coverage guide the search; ends the process."""
    atheris = importlib.import_module("atheris")  # it has no types
    with atheris.instrument_imports(include=["trionet"], exclude=unwatched(name)):
        target = load(name)
    words = finds / f"{name}.words"
    words.write_text("".join(f'"{escaped(word)}"\n' for word in target.words))
    options = {
        "max_total_time": seconds,
        "max_len": target.bytes_max,
        "timeout": RUN_SECONDS_MAX,
        "rss_limit_mb": MEMORY_MIB_MAX,
        "dict": words,
        "artifact_prefix": f"{finds}/{name}-",
        "reload": 0,
    }
    flags = [f"-{option}={value}" for option, value in options.items()]
    atheris.Setup([sys.argv[0], *flags, str(corpus), str(seeds)], target.run)
    atheris.Fuzz()


def unwatched(name: str) -> list[str]:
    """The modules of the package whose branches do not matter for a target.

    To watch all of them would take some ten seconds at each start.
    """
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / "trionet").rglob("*.py")
    }
    of_interest = watched(name)
    return sorted(
        module
        for module in modules
        if not f"{module}.".startswith(tuple(f"{one}." for one in of_interest))
    )


def escaped(word: bytes) -> str:
    """A word as a dictionary of libFuzzer has it."""
    return "".join(f"\\x{byte:02X}" for byte in word)


if __name__ == "__main__":
    main(sys.argv[1:])
