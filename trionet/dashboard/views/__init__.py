"""The views, one a file, in the order of their tabs. A new one needs a line here and nothing else.

What a view is: :mod:`trionet.dashboard.view`.
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
    """A new instance of each."""
    return [view() for view in VIEWS]
