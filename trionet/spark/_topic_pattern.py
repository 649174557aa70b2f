"""The regular expressions of ``subscribePattern``, which are Java's, as in the connector. Pure.

Topics may be named by strangers, so a name is matched in a bounded number of steps.

The engine is imported for a query with a pattern only: a query without is planned and read in three
new processes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ..errors import ConfigError

if TYPE_CHECKING:
    from .._util.patterns._java_pattern import JavaPattern

STATES_MAX: Final = 100_000
"""How large an expression may be: enough for an alternative for each of thousands of topics."""
STEPS_MAX: Final = 5_000_000
"""How many steps the match of one name may take: seconds. A topic's name may have 249 characters,
which an expression without back-references rarely takes more than a million steps for."""
TOPICS_MAX: Final = 100_000
"""How many topics are remembered, as a stream asks about all of a cluster in each micro-batch, and
30 µs for each of thousands is more than the rest."""
#: Flags of Unicode and of line ends, which make no difference for the names of topics.
_IGNORED_FLAGS: Final = "duU"


def check(pattern: str) -> str:
    """Return a regular expression in Java's syntax, after checking it.

    Raises:
        ConfigError: the pattern is invalid, or has a construct that is not supported.
    """
    try:
        _compiled(pattern)
    except ValueError as error:
        raise ConfigError(
            f"subscribePattern = {pattern!r} is not a regular expression, or has something of"
            f" Java's that is not supported: {error}; it may match anywhere in the name of a topic"
        ) from None
    return pattern


@lru_cache(maxsize=TOPICS_MAX)
def is_found(pattern: str, topic: str) -> bool:
    """Return whether a checked expression matches anywhere in the name of a topic.

    Raises:
        ConfigError: the match takes too many steps.
    """
    from .._util.patterns._program import Steps, TooManyStepsError

    try:
        return next(_compiled(pattern).find_all(topic, Steps(STEPS_MAX)), None) is not None
    except TooManyStepsError:
        raise ConfigError(
            f"subscribePattern = {pattern!r} needs more than {STEPS_MAX} steps for the topic"
            f" {topic!r}; avoid back-references, lookahead and possessive repetition"
        ) from None


@lru_cache(maxsize=16)
def _compiled(pattern: str) -> JavaPattern:
    from .._util.patterns._java_pattern import JavaPattern

    return JavaPattern(pattern, ignored_flags=_IGNORED_FLAGS, states_max=STATES_MAX, is_ascii=True)
