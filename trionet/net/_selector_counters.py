"""Totals of one selector: polls, reads and writes, authentications.

(Kafka: Selector.SelectorMetrics, without its sensors.) Counting costs one addition; metrics compute
rates and averages from the totals when a snapshot is taken.
"""

# Compiled by mypyc.

from __future__ import annotations

from ..metrics._rates import RollingMaximum


class SelectorCounters:
    """Totals since the start of the selector, unless noted.

    Attributes:
        polls: completed polls.
        network_io: channels processed because of an event, plus Sends started.
        io_ns: the time spent on channels, in nanoseconds, excluding the time in which the loop
            waited or other tasks ran.
        connected: outgoing connections that were established.
        largest_send: the size of the largest frame sent recently, in bytes.
        authenticated: successful first authentications of connections.
        authenticated_for_good: successful first authentications of peers that cannot
            re-authenticate (KIP-368).
        authentication_failures: failed first authentications.
        reauthenticated: successful re-authentications.
        reauthentication_failures: failed re-authentications, which close the connection.
        reauthentication_ms: the total duration of the successful re-authentications, in
            milliseconds.
        longest_reauthentication_ms: the longest recent re-authentication, in milliseconds.
    """

    def __init__(self) -> None:
        self.polls = self.network_io = self.io_ns = self.connected = 0
        self.largest_send: RollingMaximum = RollingMaximum()
        self.authenticated = self.authenticated_for_good = self.authentication_failures = 0
        self.reauthenticated = self.reauthentication_failures = self.reauthentication_ms = 0
        self.longest_reauthentication_ms: RollingMaximum = RollingMaximum()

    def note_reauthentication(self, duration_ms: int) -> None:
        """Count a successful re-authentication."""
        self.reauthenticated += 1
        self.reauthentication_ms += duration_ms
        longest = self.longest_reauthentication_ms
        longest.current = max(longest.current, duration_ms)
