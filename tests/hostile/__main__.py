"""`python3 tests hostile [--sizes BYTES…] [API…]`: the worst requests of every API, measured."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from trionet.broker.run._served_apis import APIS
from trionet.protocol import api_keys

KB, MB = 1024, 1024 * 1024
SIZES = (100 * KB, MB, 100 * MB)
RESPONSE_BYTES_MAX = 100 * MB
#: Beside four times the request and what a response may take.
MEMORY_MAX = 64 * MB
#: For how long others may wait, in milliseconds: by the size of the request, and after its end.
WAIT_MS_MAX = {100 * KB: 50, MB: 50, 100 * MB: 250}
LEFT_MS_MAX = 100


def main(arguments: list[str]) -> int:
    """Measure, tell what is beyond the limits, and say by the exit status whether anything is."""
    names = {api_keys.name_of(api.key): api.key for api in APIS}
    parser = argparse.ArgumentParser(
        prog="python3 tests hostile",
        description="Send the broker the worst requests of each API that a generator finds: how "
        "long they hold the loop, how much memory they take, and when their work ends.",
    )
    parser.add_argument("apis", nargs="*", metavar="API", help="by default all that are served")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, help="of requests, in bytes (%(default)s)"
    )
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.apis) - names.keys()
    if unknown:
        parser.error(f"not served: {', '.join(unknown)}; allowed: {', '.join(names)}")
    wrong = 0
    for size in chosen.sizes:
        for name in chosen.apis or names:
            rows = list(measured(names[name], size))
            print(summary(name, size, rows), flush=True)
            for row in rows:
                for complaint in complaints(row, size):
                    print(f"  WRONG {row['request']}: {complaint}", flush=True)
                    wrong += 1
    print(f"{wrong} beyond the limits" if wrong else "nothing beyond the limits")
    return 1 if wrong else 0


def measured(key: int, size: int) -> Iterator[dict[str, Any]]:
    """What :mod:`hostile.case` finds, in a process of its own: memory is that of the process."""
    command = [sys.executable, "-m", "hostile.case", str(key), str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        yield {"request": f"API {key}", "error": f"the process ended with {process.returncode}"}


def complaints(row: dict[str, Any], size: int) -> Iterator[str]:
    if "error" in row:
        yield row["error"]
        return
    wait = WAIT_MS_MAX.get(size, max(WAIT_MS_MAX.values()))
    if row["worst_ms"] > wait:
        yield f"it held the loop for {row['worst_ms']} ms; at most {wait}"
    memory = 4 * row["bytes"] + RESPONSE_BYTES_MAX + MEMORY_MAX
    if row["memory"] > memory:
        yield f"it took {row['memory'] // MB} MB; at most {memory // MB}"
    if row.get("left_ms", 0) > LEFT_MS_MAX:
        yield f"its work went on for {row['left_ms']} ms; at most {LEFT_MS_MAX}"


def summary(name: str, size: int, rows: list[dict[str, Any]]) -> str:
    done = [row for row in rows if "error" not in row]
    worst = max((row["worst_ms"] for row in done), default=0)
    memory = max((row["memory"] for row in done), default=0) // MB
    left = max((row.get("left_ms", 0) for row in done), default=0)
    return (
        f"{name:<24}{size // KB:>8} KB {len(done):>3} requests   loop held {worst:>6} ms"
        f"   memory {memory:>4} MB   after the end {left:>5} ms"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
