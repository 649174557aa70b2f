"""Whether there is a Java for Spark; before there is an environment, too, hence only Python's own
library.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess

#: What Spark 4 needs.
JAVA_MIN = 17
WHAT_TO_DO = (
    f"install {JAVA_MIN} or newer (Debian, Ubuntu: apt-get install"
    f" openjdk-{JAVA_MIN}-jre-headless), or set JAVA_HOME"
)
_VERSION_SECONDS_MAX = 20


def no_java() -> str:
    """Why there is no Java for Spark where it looks: in JAVA_HOME, or else on the PATH.

    Returns:
        A sentence that says what to do; empty if there is one.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        return f"there is no Java; {WHAT_TO_DO}"
    version = _version(java)
    if version is None:  # such as the stub of macOS, which only says where to get one
        return f"{java} does not run; {WHAT_TO_DO}"
    if version < JAVA_MIN:
        return f"{java} is Java {version}; {WHAT_TO_DO}"
    return ""


def _version(java: str) -> int | None:
    try:
        done = subprocess.run(
            [java, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_VERSION_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Until 8 they called themselves 1.8.
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(found[1]) if found and done.returncode == 0 else None
