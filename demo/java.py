"""Whether there is a Java; before there is an environment, too, hence the standard library only."""

from __future__ import annotations

import os
import shutil


def has_java() -> bool:
    """Whether a java is where Spark looks for it: in JAVA_HOME, or else on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin") if home else None) is not None
