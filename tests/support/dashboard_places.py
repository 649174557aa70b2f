"""Every page of the dashboard, and the keys that lead there, of a broker with a crowd."""

from __future__ import annotations

from typing import Final

import attrs

from support.seen_dashboard import FOOT, chosen_line, wait_for_title
from support.terminal import Terminal
from trionet.dashboard.drawing._cells import UNICODE, Glyphs
from trionet.dashboard.views import VIEWS


@attrs.frozen
class Place:
    """A page.

    Attributes:
        name: of it, for tests.
        steps: keys, each with how the title begins then; ``>`` stands between views.
        text: what is on it, also on the smallest screen.
    """

    name: str
    steps: tuple[tuple[str, str], ...]
    text: str

    def title(self, glyphs: Glyphs = UNICODE) -> str:
        """How its title begins."""
        return self.steps[-1][1].replace(">", glyphs.into)

    def wait(self, screen: Terminal, glyphs: Glyphs = UNICODE) -> str:
        """The screen as soon as it has the page."""
        wait_for_title(screen, self.title(glyphs))
        return screen.wait_for(self.text, FOOT)

    def go(self, screen: Terminal, glyphs: Glyphs = UNICODE) -> str:
        """Go there from anywhere; gives the screen."""
        key, title = self.steps[0]
        screen.press(key, key)  # the second leads to the top of what was opened out of it
        text = wait_for_title(screen, title)
        for key, title in self.steps[1:]:
            screen.wait_until(lambda _: chosen_line(screen) is not None, "a row to open")
            screen.press(key)
            text = wait_for_title(screen, title.replace(">", glyphs.into))
        return text


#: What a view with a tab has on the screen.
_TEXTS: Final = {
    "overview": "Traffic",
    "connections": "client-",
    "apis": "P99",
    "processors": "request queue",
    "topics": "orders",
    "groups": "MEMBERS",
    "quotas": "max.connections",
    "closes": "INVALID_RECEIVE",
    "pipeline": "REQUESTS",
    "log": "LEVEL",
    "trio": "loop lag p99",
    "brokers": "CONTROLLER",
    "sessions": "EPOCH",
    "transactions": "TRANSACTIONAL ID",
    "faults": "not under test",
}
TABS: Final = tuple(
    Place(view.name, ((view.key, view.title),), _TEXTS[view.name]) for view in VIEWS
)

_API: Final = (("3", "APIs"), ("Enter", "APIs > "))
_CONNECTION: Final = (("2", "Connections"), ("Enter", "Connections > 127.0.0.1:"))
_TOPIC: Final = (("5", "Topics"), ("Enter", "Topics > orders"))
_TAIL: Final = (*_TOPIC, ("Enter", "Topics > orders > orders 0"))
_GROUP: Final = (("6", "Groups"), ("Enter", "Groups > readers"))
_TRANSACTION: Final = (("n", "Transactions"),)
_PIPELINE: Final = ("9", "Spark pipeline")
#: Those that others open; of topics the first one must be ``orders``, of groups ``readers``.
OPENED: Final = (
    Place("api", _API, "since start"),
    Place("connection", _CONNECTION, "User:"),
    Place("partitions", _TOPIC, "LEADER"),
    Place("tail of a partition", _TAIL, "VALUE"),
    Place("record", (*_TAIL, ("Enter", "Topics > orders > orders 0 > orders 0 off")), "value, "),
    Place("tail of a topic", (_TOPIC[0], ("f", "Topics > orders")), "VALUE"),
    Place("settings of a topic", (_TOPIC[0], ("c", "Topics > configs of topic")), "retention.ms"),
    Place("tail of all", (*_TOPIC, ("f", "Topics > orders > orders  ")), "VALUE"),
    Place("its settings", (*_TOPIC, ("c", "Topics > orders > configs of")), "retention.ms"),
    Place("group", _GROUP, "COMMITTED"),
    Place("members", (*_GROUP, ("v", "Groups > readers > members of readers")), "reader-0"),
    Place("transaction", (*_TRANSACTION, ("Enter", "Transactions > till-")), "LAST RECORD"),
    Place("minute", (_PIPELINE, ("Enter", "Spark pipeline > minute 11:49")), "Fetch"),
    Place("talkers", (_PIPELINE, ("o", "Spark pipeline > Top talkers")), "bytes"),
    Place("incidents", (_PIPELINE, ("i", "Spark pipeline > Incidents")), "STATE"),
    Place("anomalies", (_PIPELINE, ("a", "Spark pipeline > Anomalies")), "SCORE"),
    Place("line", (("0", "Log"), ("Enter", "Log > line")), "trionet."),
    Place("broker", (("b", "Brokers"), ("Enter", "Brokers > configs of broker 1")), "log.dirs"),
)
PLACES: Final = TABS + OPENED


def prepare(screen: Terminal) -> None:
    """Have ``orders`` be the first of the topics and ``readers`` of the groups."""
    for key, title, name in (("5", "Topics", "orders"), ("6", "Groups", "readers")):
        screen.press(key, key)
        wait_for_title(screen, title)
        screen.press("/")
        screen.type(name)
        screen.press("Enter")
        screen.wait_for(f"filter {name}")
