"""The Python that Spark starts beside its JVM, several times for each session, in tests."""

from __future__ import annotations

import sys
from pathlib import Path

from trionet.spark import worker_python


def spark_python() -> dict[str, str]:
    """Environment variables for whatever starts Spark.

    Its workers are this Python: `python3` may be another one, without trionet. And they find their
    bytecode beside the environment. Compiling PySpark, pyarrow and pandas anew takes each of them
    five times the instructions of everything else, where an environment keeps bytecode out.
    """
    return {
        "PYSPARK_PYTHON": worker_python(),
        "PYTHONPYCACHEPREFIX": str(Path(sys.prefix) / "bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",  # as if it were not set
    }
