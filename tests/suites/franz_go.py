"""franz-go's tests of groups and transactions: chains of groups, whose members come and go.

No record may be read twice; with transactions, each link writes what it has read exactly once.

Go's module proxy has the tests with the library. They are built once, and take brokers by
`KGO_SEEDS`. franz-go is no dependency of this project, so its version stands here.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from suites.report import Outcome, Report
from support.cache import Unavailable, cache_folder, made_once, require_program
from support.trionet_process import trionet_broker_process

NAME = "franz-go"
VERSION = "v1.22.2"
_MODULE = "github.com/twmb/franz-go"
_SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
_TESTS = ("TestGroupETL", "TestTxnEtl")
_RECORDS = 50_000
_SECONDS_MAX = 600
_RESULT = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
_OUTCOMES = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}


def _build(binary: Path) -> None:
    go = require_program("go", f"builds the tests of {NAME}")
    folder = binary.with_name("module")
    folder.mkdir(exist_ok=True)
    (folder / "go.mod").write_text("module trionet/suites\n\ngo 1.22\n")
    (folder / "uses.go").write_text(f'package uses\n\nimport _ "{_MODULE}/pkg/kgo"\n')
    for arguments in (
        ["get", f"{_MODULE}@{VERSION}"],
        ["get", "-t", f"{_MODULE}/pkg/kgo@{VERSION}"],
        ["test", "-c", "-o", str(binary), f"{_MODULE}/pkg/kgo"],
    ):
        done = subprocess.run(
            [go, *arguments], check=False, cwd=folder, capture_output=True, text=True
        )
        if done.returncode:
            said = done.stderr.strip()[-300:]
            raise Unavailable(f"the tests of {NAME} could not be built: {said}")


def run_franz_go(more: Sequence[str]) -> Report:
    """Run it, with its output passed through.

    Args:
        more: further arguments for the test's binary.

    Raises:
        Unavailable: there is no Go, or the module cannot be had.
    """
    folder = cache_folder() / "suites" / f"{NAME}-{VERSION}"
    binary = made_once(folder / "kgo.test", _build)
    with trionet_broker_process(settings=_SETTINGS) as (bootstrap, _):
        done = subprocess.run(
            [
                *(str(binary), "-test.v", "-test.run", f"^({'|'.join(_TESTS)})$"),
                *(f"-test.timeout={_SECONDS_MAX}s", *more),
            ],
            check=False,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={
                **os.environ,
                "KGO_SEEDS": bootstrap,
                "KGO_TEST_RF": "1",
                "KGO_TEST_RECORDS": str(_RECORDS),
                "KGO_LOG_LEVEL": "none",
            },
        )
    print(done.stdout, flush=True)
    return Report(NAME, outcomes(done.stdout))


def outcomes(said: str) -> list[Outcome]:
    """What Go's verbose output reports; a test with parts counts by its parts."""
    found = {name: _OUTCOMES[word] for word, name in _RESULT.findall(said)}
    parts = [name for name in found if "/" in name] or list(found)
    return [
        Outcome(name, found[name], "" if found[name] == "passed" else "see above") for name in parts
    ]
