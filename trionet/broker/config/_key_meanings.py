"""What the settings of brokers and topics mean: the documentation in responses of DescribeConfigs.

The texts are our own, one phrase for each key. Kafka's have several paragraphs, in HTML.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from ._broker_keys import APPLIED, TRIONET_KEYS
from ._dynamic_config import base_key
from ._dynamic_config_store import EFFECTIVE_WITH_SEVERAL

_APPLIED = frozenset((*(row[0] for row in (*APPLIED, *TRIONET_KEYS)), *EFFECTIVE_WITH_SEVERAL))
_NOT_APPLIED = "; accepted by trionet without being applied"


@cache
def key_meanings() -> dict[str, dict[str, str]]:
    """Return the meanings of keys in three tables: ``applied``, ``others`` and ``topics``."""
    return tomllib.loads(Path(__file__).with_name("key_meanings.toml").read_text("utf-8"))


def broker_documentation(key: str) -> str | None:
    """Return the documentation of a broker key, or of a listener's; None if it is unknown."""
    base, meanings = base_key(key), key_meanings()
    if base in _APPLIED:
        return meanings["applied"].get(base) or meanings["others"][base]
    meaning = meanings["others"].get(base)
    return meaning and meaning + _NOT_APPLIED


def topic_documentation(key: str) -> str | None:
    """Return the documentation of a topic key; None if it is unknown."""
    return key_meanings()["topics"].get(key)
