"""librdkafka at full speed (librdkafka.c), the very library that confluent-kafka brings along."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from functools import cache
from pathlib import Path

from support.cache import Unavailable
from support.compiled import compiled


@cache
def _library() -> Path:
    found = importlib.util.find_spec("confluent_kafka")
    if found is None or found.origin is None:
        raise Unavailable("confluent-kafka is not installed")
    folder = Path(found.origin).parents[1] / "confluent_kafka.libs"
    for library in folder.glob("librdkafka*.so*"):
        return library
    raise Unavailable(f"confluent-kafka brings no librdkafka of its own in {folder}")


def librdkafka(
    mode: str, bootstrap: str, topic: str, size: int, amount: float, **settings: str
) -> dict[str, float]:
    """The figures of one client in a process of its own.

    Args:
        mode: `produce` or `consume` (records and megabytes per second), or `latency` (of one
            awaited record after another, in µs).
        bootstrap: the broker.
        topic: an existing topic; partition 0 is used.
        size: bytes of a record's value.
        amount: records, for `latency` seconds.
        settings: librdkafka's configuration, dots as underscores.

    Raises:
        RuntimeError: a record was lost, refused or changed.
        Unavailable: there is no C compiler or no library.
    """
    program = compiled(Path(__file__).with_suffix(".c"), "-ldl")
    command = [str(program), str(_library()), mode, bootstrap, topic, str(size), str(amount)]
    command += [f"{key.replace('_', '.')}={value}" for key, value in settings.items()]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"the client ended with {done.returncode}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
