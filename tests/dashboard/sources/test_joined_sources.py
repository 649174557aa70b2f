"""A source that is loaded later."""

from __future__ import annotations

import trio
import trio.testing

from support.watching import watching
from trionet import open_broker
from trionet.dashboard.sources._joined_sources import DeferredSource

ADDRESS = "127.0.0.1:1"


def task_names() -> set[str]:
    """The functions that tasks of this loop are in, by their names with those of their classes."""
    root = trio.lowlevel.current_root_task()
    assert root is not None
    names, left = set(), [root]
    while left:
        task = left.pop()
        left += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
        names.add(task.name)
    return names


async def test_what_is_seldom_looked_at_is_made_when_it_is() -> None:
    """It says at once that it has started: nobody waits for what nobody looks at."""
    keywords: dict[str, object] = {"bootstrap_servers": ADDRESS}
    later = DeferredSource("_tail_source", "TailSource", keywords, ("tail",))
    tail = "trionet.dashboard.sources._tail_source.TailSource.run"
    async with watching(later) as watched:
        later.focus("topics")
        await trio.testing.wait_all_tasks_blocked()
        assert tail not in task_names()
        later.focus("tail", ("t", None))
        await watched.until(lambda model: model.tail_of == ("t", None))
        assert tail in task_names()


async def test_what_is_always_looked_at_starts_with_its_first_look() -> None:
    async with open_broker() as broker:
        servers = broker.bootstrap_servers
        later = DeferredSource("_cluster_source", "ClusterSource", {"bootstrap_servers": servers})
        async with watching(later) as watched:
            model = watched.model

    assert model.topics.updated_at is not None
