"""Imports: processor time of importing codecs in a new interpreter, over one that imports nothing.

Bytecode is warm. `trionet` is what any use of the package begins with, the hot APIs are Produce,
Fetch, Metadata and ApiVersions. Codecs are those of the flexible versions (KIP-482), kio's as well;
what came before is loaded when a peer asks for it, and is measured with all of them.
A run is many interpreters, all sides in turn; the best of each.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import trionet
from bench.measured import Figure, Measured
from bench.options import Options
from trionet.protocol.messages.registry import APIS

RUNS = 3
SECONDS = 6.0
HOT: Final = ("produce", "fetch", "metadata", "api_versions")
_MESSAGES: Final = "trionet.protocol.messages"
_PROGRAM: Final = """
from time import thread_time_ns
began = thread_time_ns()
{imports}
ended = thread_time_ns()
import sys
print(ended - began, len(sys.modules))
"""
_ROUND_SECONDS: Final = 0.15  # what one interpreter takes, roughly


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "importing codecs, over bare Python",
        (Figure("ms", "ms", "{:,.2f}".format), Figure("modules", "modules")),
    )
    programs = {case: _PROGRAM.format(imports=text) for case, text in _cases().items()}
    wanted = {name: programs[name] for name in programs if options.wants_case("".join(name))}
    if importlib.util.find_spec("kafka") is None:
        measured.skipped["kafka-python"] = "is not installed"
    rounds = max(1, int(options.seconds / _ROUND_SECONDS / max(1, len(wanted))))
    bare = _modules("")
    for _ in range(options.runs):
        best: dict[tuple[str, str], tuple[int, int]] = {}
        for _ in range(rounds):
            for name, program in wanted.items():
                best[name] = min(best.get(name, (sys.maxsize, 0)), _timed(program))
        for (case, side), (nanoseconds, modules) in best.items():
            measured.add(case, side, {"ms": nanoseconds / 1e6, "modules": modules - bare})
    return measured


def _cases() -> dict[tuple[str, str], str]:
    """What is imported, by case and side."""
    every = [row[0] for row in APIS.values()]
    found = {
        ("the package", "trionet"): "import trionet",
        ("codecs of the four hot APIs", "trionet"): _imports(HOT),
        ("codecs of all APIs", "trionet"): _imports(every),
        ("codecs of all APIs and versions", "trionet"): _imports([*every, *_older()]),
        ("codecs of the four hot APIs", "kio"): "\n".join(
            f"import kio.schema.{name}.v{version}.{side}"
            for name in HOT
            for version in _versions(name)
            for side in ("request", "response")
        ),
    }
    if importlib.util.find_spec("kafka") is not None:
        found["codecs of the four hot APIs", "kafka-python"] = "\n".join(
            f"import kafka.protocol.{name}"
            for name in ("producer", "consumer", "metadata.metadata", "metadata.api_versions")
        )
    return found


def _versions(name: str) -> list[int]:
    package = importlib.import_module(f"kio.schema.{name}")
    folders = Path(package.__path__[0]).glob("v*")
    first_flexible = {row[0]: row[4] for row in APIS.values()}[name]
    versions = sorted(int(folder.name[1:]) for folder in folders)
    return [version for version in versions if version >= first_flexible]


def _older() -> list[str]:
    files = (Path(trionet.__file__).parent / "protocol" / "messages" / "older").glob("[a-z]*.py")
    return sorted(f"older.{file.stem}" for file in files)


def _imports(names: tuple[str, ...] | list[str]) -> str:
    return "\n".join(f"import {_MESSAGES}.{name}" for name in names)


def _modules(imports: str) -> int:
    return _timed(_PROGRAM.format(imports=imports))[1]


def _timed(program: str) -> tuple[int, int]:
    """Nanoseconds and the number of modules afterwards, in an interpreter of its own."""
    path = str(Path(trionet.__file__).parents[1])
    begin = f"import sys\nsys.path.insert(0, {path!r})\n"
    command = [sys.executable, "-W", "ignore", "-c", begin + program]
    # What finds the sources of compiled modules would be measured, too, and messages have none.
    env = {key: value for key, value in os.environ.items() if key != "TRIONET_PURE"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    nanoseconds, modules = done.stdout.split()
    return int(nanoseconds), int(modules)
