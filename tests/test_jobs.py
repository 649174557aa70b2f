"""Jobs of `python3 tests` leave nothing behind, whoever ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import SAME_TRIONET

TESTS = Path(__file__).resolve().parent

WAITING = """\
import sys
from support.processes import running

with running(["sleep", "600"]) as child:
    print(child.pid, flush=True)
    sys.stdin.read()
"""
WAITING_IN_TRIO = """\
import sys
import trio
from support.processes import running

async def main():
    with running(["sleep", "600"]) as child:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            print(child.pid, flush=True)

trio.run(main)
"""
WAITING_IN_A_TEST = """\
import sys
from support.processes import running

def test_waiting():
    with running(["sleep", "600"]) as child:
        print(child.pid, file=sys.__stdout__, flush=True)
        sys.__stdin__.read()
"""


#: As a script's `job &`: nobody's Ctrl-C reaches it.
IN_THE_BACKGROUND = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
A_JOB = [sys.executable, "-m", "support.job", "test_job"]
A_TEST = [sys.executable, "-m", "pytest", "-qs", "-p", "conftest", "test_job.py"]


def importing(folder: Path) -> dict[str, str]:
    """The environment of a job whose program is in a folder."""
    path = [str(folder), str(TESTS), SAME_TRIONET["PYTHONPATH"]]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "command", "number", "status"),
    [
        (WAITING, A_JOB, signal.SIGTERM, 143),
        (WAITING, A_JOB, signal.SIGINT, 130),
        (WAITING_IN_TRIO, A_JOB, signal.SIGHUP, 129),
        (WAITING_IN_TRIO, [*IN_THE_BACKGROUND, *A_JOB], signal.SIGTERM, 143),
        (WAITING_IN_A_TEST, A_TEST, signal.SIGTERM, 2),
    ],
)
def test_a_signal_ends_what_a_job_has_started_too(
    text: str, command: list[str], number: int, status: int, tmp_path: Path
) -> None:
    (tmp_path / "test_job.py").write_text(text)
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=importing(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        restore_signals=True,
        start_new_session=True,
    ) as job:
        assert job.stdout is not None
        try:
            child = next(int(line) for line in job.stdout if line.strip().isdecimal())
            job.send_signal(number)
            found = job.wait()
        except BaseException:  # such as the test's own time limit
            os.killpg(job.pid, signal.SIGKILL)
            raise

    assert status == found
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_job_whose_parent_ignores_a_signal_starts_programs_that_do_not(
    number: int, tmp_path: Path
) -> None:
    """As under nohup, in the background of a script, or as the first process of a container."""
    (tmp_path / "test_job.py").write_text(
        "import signal, subprocess, sys\n"
        "child = 'import signal; print([signal.getsignal(each) is signal.SIG_IGN"
        " for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)])'\n"
        "subprocess.run([sys.executable, '-c', child])\n"
    )
    name = signal.Signals(number).name.removeprefix("SIG")
    found = subprocess.run(
        ["sh", "-c", f'trap "" {name}; exec "$@"', "sh", *A_JOB],
        cwd=tmp_path,
        env=importing(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    assert "[False, False, False]\n" == found.stdout
