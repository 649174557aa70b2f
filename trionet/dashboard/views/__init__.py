"""All views in the order of the tabs.

A new view must be added to :data:`VIEWS`. See :mod:`trionet.dashboard.ui._view` for how to
write a view.
"""

from __future__ import annotations

from typing import Final

from ..ui._view import View
from ._apis import ApisView
from ._cluster import BrokersView, QuotasView
from ._connections import CloseReasonsView, ConnectionsView, FetchSessionsView
from ._faults import FaultsView
from ._groups import GroupsView
from ._log import LogView
from ._overview import OverviewView
from ._pipeline import PipelineView
from ._processors import ProcessorsView, TrioView
from ._topics import TopicsView
from ._transactions import TransactionsView

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
    TransactionsView,
    FaultsView,
)


def all_views() -> list[View]:
    """Create all views that have a tab."""
    return [view() for view in VIEWS]


def initial_views() -> list[str]:
    """Return the names of the views that a dashboard can begin with.

    Besides the views with a tab, these are the views to which one of them has a link that needs no
    selected row, such as the pipeline's incidents.
    """
    linked = (link.name for view in VIEWS for link in view.links if not link.needs_row)
    return [*(view.name for view in VIEWS), *linked]
