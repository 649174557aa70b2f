"""What a selector counts beside what its channels do: plain numbers, for whoever asks.

(Kafka: Selector.SelectorMetrics, without its sensors.) Rates and averages are made of them when a
snapshot of the metrics is taken; a connection or a poll pays an addition.
"""

# Compiled by mypyc.

from __future__ import annotations

from ..metrics._rates import RollingMaximum


class SelectorCounters:
    """The polls of a selector and the authentications of its connections, since the start.

    Attributes:
        polls: polls that came back.
        network_io: reads and writes of sockets that moved something.
        io_ns: time of the steps between two polls and inside them, in nanoseconds; not the time in
            which the loop waited or others ran.
        connected: outgoing connections that were made.
        largest_send: size of the largest frame that was sent whole, of late.
        authenticated: connections that proved who they are.
        authenticated_for_good: those of them whose client cannot authenticate again (KIP-368).
        authentication_failures: connections that did not.
        reauthenticated: successful re-authentications.
        reauthentication_failures: failed ones, each the end of its connection.
        reauthentication_ms: time from the begin to the end of the successful ones, in all.
        longest_reauthentication_ms: the longest of them, of late.
    """

    def __init__(self) -> None:
        self.polls = 0
        self.network_io = 0
        self.io_ns = 0
        self.connected = 0
        self.largest_send: RollingMaximum = RollingMaximum()
        self.authenticated = 0
        self.authenticated_for_good = 0
        self.authentication_failures = 0
        self.reauthenticated: int = 0
        self.reauthentication_failures = 0
        self.reauthentication_ms: int = 0
        self.longest_reauthentication_ms: RollingMaximum = RollingMaximum()

    def note_reauthentication(self, duration_ms: int) -> None:
        """Count a successful re-authentication that took so long."""
        self.reauthenticated += 1
        self.reauthentication_ms += duration_ms
        longest = self.longest_reauthentication_ms
        longest.current = max(longest.current, duration_ms)
