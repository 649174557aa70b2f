"""Has Spark make minutes of the broker's request log. A process of its own.

``python -m demo.telemetry_job BOOTSTRAP TOPIC RESULTS FOLDER`` is ``trionet pipeline run`` on one
core, with all its files below the folder, and ends with the demo.
"""

from __future__ import annotations

import sys

from demo.reporting import Reporter, keep_reports_apart
from demo.small_spark import settings
from trionet.cli.main import main

#: The demo's minutes are not worth much waiting: a broker's clock is the only one.
DELAY = "5s"


def command(bootstrap_servers: str, topic: str, results: str, folder: str) -> list[str]:
    """The arguments of trionet."""
    places = ["--topic", topic, "--results-topic", results, "--folder", f"{folder}/results"]
    sets = [word for key, value in settings(folder).items() for word in ("--set", f"{key}={value}")]
    return [
        *("pipeline", "run", "--bootstrap-server", bootstrap_servers, *places),
        *("--master", "local[1]", "--watermark", DELAY, "--interval", DELAY, "--json", *sets),
    ]


if __name__ == "__main__":
    keep_reports_apart()
    Reporter()  # hears when the demo is gone
    sys.exit(main(command(*sys.argv[1:])))
