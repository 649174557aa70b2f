"""Many requests of few kinds, at a given rate: the load generator in C, once for each kind."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from bench.frames import api_versions, empty_fetch, produce
from bench.load import Frame, load_command
from support.processes import running

ORDERS, EMPTY, NOWHERE = "orders", "empty", "nowhere"
CONNECTIONS = 16
#: For how much longer than its time a generator runs: it warms up.
WARMED_UP = 1.1
PAYLOAD_BYTES = 100
# How long a generator may take to tell after its time is over.
_LATE_SECONDS = 60.0


@attrs.frozen
class Load:
    """One kind of request.

    Attributes:
        client: what its client calls itself.
        frame: what is sent.
        share: of all requests.
    """

    client: str
    frame: Frame
    share: float


def _failing(client: str) -> Frame:
    """To a topic that is not there: answered with an error that nobody minds."""
    return attrs.evolve(produce(NOWHERE, bytes(PAYLOAD_BYTES), client), zeros=())


LOADS = (
    Load("asks", api_versions("asks"), 0.6),
    Load("writes", produce(ORDERS, bytes(PAYLOAD_BYTES), "writes"), 0.2),
    Load("reads", empty_fetch(EMPTY, "reads"), 0.15),
    Load("errs", _failing("errs"), 0.05),
)


@contextmanager
def loads(port: int, rate: float, seconds: float) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """The generators, by client."""
    with contextlib.ExitStack() as stack:
        started = {}
        for load in LOADS:
            command = stack.enter_context(
                load_command(port, CONNECTIONS, seconds, load.frame, rate * load.share)
            )
            started[load.client] = stack.enter_context(running(command))
        yield started


def answered(generator: subprocess.Popen[bytes]) -> int:
    """How many requests a generator had responded, when it has ended.

    Raises:
        RuntimeError: a response was wrong or missing.
    """
    assert generator.stdout is not None
    told = generator.stdout.read()
    if generator.wait(_LATE_SECONDS):
        raise RuntimeError(f"a load generator ended with {generator.returncode}")
    requests: int = json.loads(told)["requests"]
    return requests
