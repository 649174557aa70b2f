"""All views, in the order of their tabs, one module each. A new one needs only a line here.

See :mod:`trionet.dashboard.view` for how to write a view.
"""

from __future__ import annotations

from typing import Final

from ..view import View
from .apis import ApisView
from .brokers import BrokersView
from .closes import CloseReasonsView
from .connections import ConnectionsView
from .fetch_sessions import FetchSessionsView
from .groups import GroupsView
from .log import LogView
from .overview import OverviewView
from .pipeline import PipelineView
from .processors import ProcessorsView
from .quotas import QuotasView
from .topics import TopicsView
from .trio_loop import TrioView

VIEWS: Final[tuple[type[View], ...]] = (
    OverviewView,
    ConnectionsView,
    ApisView,
    ProcessorsView,
    TopicsView,
    GroupsView,
    QuotasView,
    CloseReasonsView,
    PipelineView,
    LogView,
    TrioView,
    BrokersView,
    FetchSessionsView,
)


def all_views() -> list[View]:
    """Create all views."""
    return [view() for view in VIEWS]
