"""Settings of both Sparks of the demo: to be small, to start soon, and where their files go.

A killed process cleans nothing up, so all files are below a folder that another one removes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

#: Starts sooner, at the price of a lower speed in the long run; no file for jps and its like, which
#: would be outside of the folder.
_JAVA: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"


def settings(folder: str | Path) -> dict[str, str]:
    """Settings of Spark, for a process of its own.

    Args:
        folder: for all its files.
    """
    return {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"{_JAVA} -Djava.io.tmpdir={folder}",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
