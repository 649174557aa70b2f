"""``python3 demo [STORY]``: set up what a story needs, then play it; arguments are the story's."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / ".ci"))

from environment import SetupFailed, is_ready, prepare, run_inside

from demo.java import no_java

STORIES = ("flights", "netstrings", "bridge")
#: What is installed for every story, and what for the pipelines in Spark.
EXTRA = "demo"
SPARK_EXTRA = "demo,pipeline"


def chosen(arguments: list[str]) -> tuple[str, list[str]]:
    """The story to play, the first one if none is named, and the arguments for it."""
    if arguments and arguments[0] in STORIES:
        return arguments[0], arguments[1:]
    return STORIES[0], arguments


def wants_spark(story: str, arguments: list[str]) -> bool:
    """Whether Spark may run, for which PySpark is installed; that is large."""
    if story != STORIES[0] or {"-h", "--help"} & set(arguments):
        return False
    return "--no-spark" not in arguments or is_spark_asked(arguments)


def is_spark_asked(arguments: list[str]) -> bool:
    """Whether the demo cannot do without."""
    return bool({"--spark", "--telemetry"} & set(arguments))


def add_spark(is_asked: bool) -> None:
    """Install what the pipelines need; unless they were asked for, the demo can run without."""
    if is_ready(SPARK_EXTRA):
        return
    sys.stderr.write("trionet: PySpark comes next, some 400 MB; --no-spark does without\n")
    try:
        prepare(SPARK_EXTRA)
    except SetupFailed as failure:
        if is_asked:
            raise
        sys.stderr.write(f"trionet: it goes on without PySpark: {failure}\n")


def main(arguments: list[str]) -> None:
    """Play a story; does not return from it."""
    story, rest = chosen(arguments)
    is_wanted, is_asked = wants_spark(story, rest), is_spark_asked(rest)
    obstacle = no_java() if is_wanted else ""
    if obstacle and is_asked:
        sys.exit(f"demo: {obstacle}")
    also = partial(add_spark, is_asked) if is_wanted and not obstacle else None
    # -P: a folder called "demo" where the user happens to be must not win.
    run_inside(EXTRA, "-P", "-m", f"demo.{story}", *rest, also=also)


if __name__ == "__main__":
    main(sys.argv[1:])
