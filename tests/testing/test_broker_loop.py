"""A broker in a thread, in processes that have no such thread or cannot have one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.processes import SAME_TRIONET


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **SAME_TRIONET},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


FORKING = """
import os
import sys
import warnings

warnings.simplefilter("ignore")  # about threads, of which Python 3.12 and later warn in every fork

import trio
import trionet
from trionet.testing import raw_peer
from trionet.protocol.messages.metadata import MetadataRequest

with trionet.testing.broker(log_dir=sys.argv[1], topics=["t"]) as broker:
    with broker.faults.hold("Produce"):
        child = os.fork()
        if not child:
            for call in (broker.topics, broker.wait_for_records, broker.statistics):
                try:
                    call(*["t"] * (call == broker.wait_for_records))
                except trio.RunFinishedError as error:
                    print(error)
            with raw_peer(broker.bootstrap_servers) as peer:
                print(len(peer.call(MetadataRequest(topics=[]), 9).brokers), flush=True)
        else:
            os.waitpid(child, 0)
            assert len(broker.faults.active) == 1
    if child:
        broker.seed("t", ["after"])
        print(broker.values("t"))
if child:
    with trionet.testing.broker(log_dir=sys.argv[1]) as broker:
        print(broker.values("t"))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
def test_a_fork_of_the_process_leaves_the_block_and_the_broker_alone(
    tmp_path: os.PathLike[str],
) -> None:
    ran = run(f"import sys; sys.argv.append({str(tmp_path)!r})\n{FORKING}")

    assert ("", 0) == (ran.stderr, ran.returncode)
    *calls, clients, values, values_later = ran.stdout.splitlines()
    assert 3 == len(calls)
    assert all(each.startswith("the broker runs in the process that opened it") for each in calls)
    assert ("1", "[b'after']", "[b'after']") == (clients, values, values_later)


@pytest.mark.slow
@pytest.mark.parametrize("patched", ["", "select=False", "thread=False, socket=False"])
def test_in_a_process_of_gevents_it_says_where_a_broker_can_run(patched: str) -> None:
    ran = run(f"""
from gevent import monkey

monkey.patch_all({patched})

import trionet

with trionet.testing.broker():
    pass
""")

    assert ran.stderr.splitlines()[-1].startswith(
        "trionet.errors.LocalProtocolError: a broker cannot run in this process, whose threads and"
    )
