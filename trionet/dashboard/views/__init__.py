"""The views, one a file, in the order of their tabs. A new one needs a line here and nothing else.

What a view is: :mod:`trionet.dashboard.ui._view`.
"""

from __future__ import annotations

from typing import Final

from ..ui._view import View
from ._apis import ApisView
from ._brokers import BrokersView
from ._close_reasons import ClosesView
from ._connections import ConnectionsView
from ._fetch_sessions import FetchSessionsView
from ._groups import GroupsView
from ._log import LogView
from ._overview import OverviewView
from ._pipeline import PipelineView
from ._processors import ProcessorsView
from ._quotas import QuotasView
from ._topics import TopicsView
from ._trio_loop import TrioView

VIEWS: Final[tuple[type[View], ...]] = (
    OverviewView,
    ConnectionsView,
    ApisView,
    ProcessorsView,
    TopicsView,
    GroupsView,
    QuotasView,
    ClosesView,
    PipelineView,
    LogView,
    TrioView,
    BrokersView,
    FetchSessionsView,
)


def all_views() -> list[View]:
    """A new instance of each."""
    return [view() for view in VIEWS]
