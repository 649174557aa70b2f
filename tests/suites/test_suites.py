"""How foreign suites are run: what is left out, what counts, what is told of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from suites.franz_go import outcomes as outcomes_of_go
from suites.librdkafka import outcomes as outcomes_of_librdkafka
from suites.report import Outcome, Report
from suites.run import served_apis
from suites.suite import Needs
from trionet.testing import broker

_TESTS = Path(__file__).parents[1]
_FOREIGN = """\
import pytest

@pytest.fixture
def server():
    return 1

@pytest.fixture
def breaks_at_the_end():
    yield
    raise RuntimeError("not torn down")

def test_passes(server): pass
def test_fails(server): assert server == 2
def test_skips(server): pytest.skip("not today")
def test_ends_badly(server, breaks_at_the_end): pass
@pytest.mark.parametrize("way", ["a[1]", "b"])
def test_needs_more(server, way): assert False
def test_meets_nobody(): assert False
"""


def outcomes(folder: Path, **told: object) -> dict[str, tuple[str, str]]:
    """What the plugin writes of `_FOREIGN`, by the test's name."""
    (folder / "test_foreign.py").write_text(_FOREIGN)
    results, wanted = folder / "results", folder / "wanted"
    wanted.write_text(json.dumps({"results": str(results), "left_out": {}, "meets_by": []} | told))
    environment = {
        **os.environ,
        "PYTHONPATH": str(_TESTS),
        "TRIONET_SUITE": str(wanted),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # they take longer to load than all of this
    }
    command = [sys.executable, "-m", "pytest"]
    command += ["-p", "suites.inside.outcomes", "-p", "no:cacheprovider"]
    subprocess.run(
        [*command, "--rootdir", str(folder), str(folder)],
        check=False,
        capture_output=True,
        env=environment,
    )
    found = json.loads(results.read_text())
    return {test.partition("::")[2]: (each["outcome"], each["why"]) for test, each in found.items()}


@pytest.mark.slow
def test_what_came_of_each_test_is_reported(tmp_path: Path) -> None:
    left_out = {"*::test_needs_more[a[1]*": "CreateAcls"}
    found = outcomes(tmp_path, left_out=left_out, meets_by=["server"])

    assert {
        "test_passes": ("passed", ""),
        "test_fails": ("failed", "assert 1 == 2"),
        "test_skips": ("skipped", "Skipped: not today"),
        "test_ends_badly": ("failed", "RuntimeError: not torn down"),
        "test_needs_more[a[1]]": ("left out", "CreateAcls"),
        "test_needs_more[b]": ("failed", "assert False"),
    } == found


def test_a_suite_is_good_when_nearly_all_of_it_passes_and_the_rest_is_explained() -> None:
    passed = [Outcome(f"test_{number}", "passed", "") for number in range(95)]
    failed = [Outcome(f"test_odd[{number}]", "failed", "") for number in range(5)]

    assert Report("foreign", passed + failed, {"test_odd[*": "odd"}).is_good
    assert not Report("foreign", passed + failed, {"test_odd[1*": "odd"}).is_good
    assert not Report("foreign", passed[1:] + failed, {"test_odd[*": "odd"}).is_good
    assert not Report("foreign", []).is_good


def test_tests_are_left_out_for_what_is_not_served() -> None:
    needs = Needs("*", ["Fetch", "CreateAcls", "EndTxn"])

    assert needs.missing({"Fetch"}) == "CreateAcls, EndTxn"
    assert not needs.missing({"Fetch", "CreateAcls", "EndTxn"})
    assert Needs("*", what="Kerberos").missing({"Fetch"}) == "Kerberos"


def test_what_is_served_is_asked_of_the_broker() -> None:
    with broker() as running:
        served = served_apis(running.bootstrap_servers)

    assert {"Fetch", "JoinGroup", "DescribeCluster"} <= served
    assert "ShareFetch" not in served


def test_what_go_says_of_its_tests_is_understood() -> None:
    said = """\
=== RUN   TestGroups
--- FAIL: TestGroups (22.74s)
    --- SKIP: TestGroups/range/848 (0.00s)
    --- PASS: TestGroups/range (10.65s)
    --- FAIL: TestGroups/sticky (1.05s)
"""

    assert [
        ("TestGroups/range/848", "skipped"),
        ("TestGroups/range", "passed"),
        ("TestGroups/sticky", "failed"),
    ] == [(each.test, each.outcome) for each in outcomes_of_go(said)]
    assert [] == outcomes_of_go("panic: the test has ended\n")


def test_what_librdkafka_says_of_its_tests_is_understood() -> None:
    said = """\
\x1b[0m\x1b[36m[0103_transactions    /  0.634s] \x1b[32m[ do_misuse:596: PASS (0.63s) ]
\x1b[0m\x1b[36m[0103_transactions    /  2.634s] \x1b[32m[ do_basic:130: packed: PASS (2.00s) ]
\x1b[0m\x1b[36m[0103_transactions    /  2.700s] \x1b[33m[ do_old:857: SKIP: too new ]
\x1b[0m\x1b[31m### Test "0103_transactions (do_empty:130: abort)" failed at test.c:5: ###
Topic t result error: no
\x1b[0m\x1b[36m[0129_aborted  / 11.813s] \x1b[32m===== Test 0129_aborted PASSED =====\x1b[0m
\x1b[0m\x1b[36m[0137_batches  / 12.813s] \x1b[32m[ do_seek:127: PASS (12.13s) ]
\x1b[0m\x1b[36m[0137_batches  / 12.813s] \x1b[32m===== Test 0137_batches PASSED =====\x1b[0m
\x1b[0m\x1b[31m### Test "0098_consumer" failed at test.c:5: ###
no such topic
"""

    assert {
        "0103_transactions/do_misuse": ("passed", ""),
        "0103_transactions/do_basic: packed": ("passed", ""),
        "0103_transactions/do_old": ("skipped", "too new"),
        "0103_transactions/do_empty: abort": ("failed", "Topic t result error: no"),
        "0129_aborted": ("passed", ""),
        "0137_batches/do_seek": ("passed", ""),
        "0098_consumer": ("failed", "no such topic"),
        "0061": ("failed", "it did not end; see above"),
    } == {
        each.test: (each.outcome, each.why)
        for each in outcomes_of_librdkafka(said, ["0061", "0098", "0103", "0129", "0137"])
    }
