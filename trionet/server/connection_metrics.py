"""Open connections by what they are: the client's software, the TLS cipher.

(Kafka: the IntGaugeSuites of Selector.) They are counted when somebody asks: a connection pays
nothing, and what is gone cannot stay in a count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from ..metrics import selector_names as names
from ..metrics.families import Family
from ..metrics.sensors import Labels, gauges
from .processor import Processor
from .snapshot_sections import software_of

# More kinds than this are counted together: what a client calls itself is up to it.
KINDS_MAX = 100
OTHER = ("other", "other")


class ConnectionKinds:
    """The collector of open connections by client software and by TLS cipher.

    Args:
        processors: the processors there are at the moment.
    """

    def __init__(self, processors: Callable[[], Iterable[Processor]]) -> None:
        self._processors = processors

    def collect(self, now: float) -> Iterator[Family]:  # noqa: ARG002 - all collectors take it
        """The families of this moment (see :data:`trionet.metrics.registry.Collect`)."""
        software: Counter[Labels] = Counter()
        ciphers: Counter[Labels] = Counter()
        for processor in self._processors():
            of_software: Counter[tuple[str, str]] = Counter()
            of_cipher: Counter[tuple[str, str]] = Counter()
            for channel in processor.selector.channels:
                of_software[software_of(channel)] += 1
                if channel.tls is not None and channel.is_ready:
                    of_cipher[channel.tls.cipher] += 1
            labels = (processor.endpoint.listener_name, str(processor.id))
            _add(software, of_software, labels)
            _add(ciphers, of_cipher, labels)
        yield gauges(names.CONNECTIONS_SOFTWARE, software)
        yield gauges(names.CONNECTIONS_TLS_INFO, ciphers)


def _add(counts: Counter[Labels], found: Counter[tuple[str, str]], labels: Labels) -> None:
    for number, (kind, count) in enumerate(found.most_common()):
        first, second = kind if number < KINDS_MAX else OTHER
        counts[first, second, *labels] += count
