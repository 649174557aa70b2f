"""Keep the frames of the dashboard as they are now: ``python -m support.frames`` in ``tests``."""

from __future__ import annotations

import os
import time
from pathlib import Path

from support.dashboard_model import busy_model
from trionet.dashboard.drawing._cells import UNICODE
from trionet.dashboard.drawing._export import as_text
from trionet.dashboard.ui._screen import draw
from trionet.dashboard.ui._ui import Ui
from trionet.dashboard.views import all_views

FRAMES = Path(__file__).parents[1] / "dashboard/frames"
SIZES = ((60, 15), (80, 24), (120, 40), (200, 60))
#: Views whose numbers come from the broker's network layer.
VIEWS = ("overview", "connections", "apis", "processors", "log")


def frame(view: str, width: int, height: int) -> str:
    """What a view shows of a broker that was watched for a minute."""
    # Another view would be another tab in all of them.
    views = [each for each in all_views() if each.name in VIEWS]
    return as_text(draw(Ui(views, view), busy_model(), width, height, UNICODE))


def path(view: str, width: int, height: int) -> Path:
    """Where a frame is kept."""
    return FRAMES / f"{view}-{width}x{height}.txt"


def main() -> None:
    """Write them all."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    FRAMES.mkdir(exist_ok=True)
    for view in VIEWS:
        for size in SIZES:
            path(view, *size).write_text(frame(view, *size), "utf-8")


if __name__ == "__main__":
    main()
