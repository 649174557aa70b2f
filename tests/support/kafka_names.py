"""The metrics that trionet's servers have under Kafka's names, in the order of their definition."""

from __future__ import annotations

from trionet.metrics import _kafka_names as names
from trionet.metrics._registry import Metric

_EVERY = [
    metric
    for found in vars(names).values()
    for metric in (found if isinstance(found, tuple) else (found,))
    if isinstance(metric, Metric)
]
_FIRST_OF_SELECTORS = _EVERY.index(names.CONNECTION_CLOSE[0])

SERVER_METRICS = tuple(_EVERY[:_FIRST_OF_SELECTORS])
SELECTOR_METRICS = tuple(_EVERY[_FIRST_OF_SELECTORS:])
