"""Whether there is a Java for Spark."""

from __future__ import annotations

import os
import shutil

NO_JAVA = (
    "Spark needs Java 17 or newer: apt-get install openjdk-17-jre-headless (Debian, Ubuntu), or"
    " set JAVA_HOME"
)


def has_java() -> bool:
    """Whether Spark will find one."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin" if home else None) is not None
