"""The demo where Spark cannot run, as a user starts it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from demo.analysis import FAILED, Analysis
from demo.child import ChildFailed, open_child
from support.flights_demo import running_demo, skip_without_flights

NO_JAVA = (
    "there is no Java; install 17 or newer (Debian, Ubuntu: apt-get install"
    " openjdk-17-jre-headless), or set JAVA_HOME"
)
NO_PYSPARK = "PySpark is not installed; `python3 demo --spark` installs it"

skip_without_flights()


def demo(*arguments: str, **environment: str) -> tuple[int | None, str, str]:
    """A whole run of the demo, without a terminal: its exit status, what it printed, its errors."""
    with running_demo(*arguments, env={"JAVA_HOME": "", **environment}) as process:
        output, errors = process.communicate()
    return process.returncode, output, errors


@pytest.mark.slow
@pytest.mark.interop
def test_without_java_one_line_says_what_to_install_and_the_demo_goes_on() -> None:
    pytest.importorskip("pyspark")
    status, output, errors = demo("--for", "1.5", PATH=os.devnull)
    lines = output.splitlines()

    assert (0, "") == (status, errors)
    told = [number for number, line in enumerate(lines) if NO_JAVA in line]
    assert told[0] in {2, 3}  # below the title and the first figures, and perhaps the group
    assert 2 == len(told)  # and once more in the summary
    assert lines[-1].startswith("Verdict: consumed == produced")


@pytest.mark.slow
def test_who_asks_for_spark_gets_an_error_where_it_cannot_run() -> None:
    pytest.importorskip("pyspark")
    assert (1, "", f"demo: {NO_JAVA}\n") == demo("--spark", JAVA_HOME=os.devnull)


def test_who_wants_no_spark_hears_nothing_of_it() -> None:
    analysis = Analysis(is_shown=False)

    assert ([], [], []) == (analysis.lines(), analysis.news(), analysis.summary())


def test_an_obstacle_is_all_that_is_shown() -> None:
    analysis = Analysis(obstacle=NO_PYSPARK)

    told = [f"no delays by Spark: {NO_PYSPARK}"]
    assert told == analysis.lines() == analysis.news() == analysis.summary()


@pytest.mark.slow
async def test_a_pipeline_that_fails_says_why_in_a_line_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(ExceptionGroup) as caught:
        async with open_child("pipeline", "localhost:9", "a", "b", "fast", str(tmp_path)) as child:
            await child.finished()

    [failure] = caught.value.exceptions
    assert isinstance(failure, ChildFailed)
    [why] = [line for line in str(failure).splitlines() if line.startswith(FAILED)]
    assert why == f"{FAILED}ValueError: could not convert string to float: 'fast'"
