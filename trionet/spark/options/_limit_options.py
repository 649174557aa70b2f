"""The options for the start and end of a query, in order of precedence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from ...errors import ConfigError
from ...protocol._config_types import FROM_0
from ..offsets._offset_limits import (
    Earliest,
    GlobalTimestamp,
    Latest,
    NoMatch,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimestamps,
    parse_offsets,
    parse_timestamps,
)
from ..offsets._partition_offsets import EARLIEST, LATEST
from ..offsets._planning import check_order, check_same_partitions
from ._option_values import OptionTexts

_STRATEGY: Final = "startingOffsetsByTimestampStrategy"
STARTING_OPTIONS: Final = (
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsets",
    _STRATEGY,
)
ENDING_OPTIONS: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")

_Read = TypeVar("_Read")


def read_limits(texts: OptionTexts, *, is_stream: bool) -> tuple[OffsetLimit, OffsetLimit]:
    """Return the start and the end of a query.

    Args:
        texts: all options of the source.
        is_stream: whether this is a streaming query, which starts at latest by default and has no
            end.

    Raises:
        ConfigError: a value is not allowed, or an option does not apply to this kind of query.
    """
    if is_stream:
        for name in ENDING_OPTIONS:
            if name in texts:
                what = "offset" if name == "endingOffsets" else "timestamp"
                raise ConfigError(
                    f"{name}: ending {what} not valid in streaming queries, which have no end;"
                    " remove the option, or use a batch query"
                )
        return _limit(texts, "starting", Latest()), Latest()
    starting, ending = _limit(texts, "starting", Earliest()), _limit(texts, "ending", Latest())
    _check_start(starting)
    _check_end(ending)
    return starting, ending


def check_limits(starting: OffsetLimit, ending: OffsetLimit) -> None:
    """Check that an explicit start and end are consistent.

    Raises:
        OffsetsMismatchError: the partitions differ, or a partition ends before it starts.
    """
    match starting, ending:
        case SpecificOffsets(), SpecificOffsets():
            if starting.topics or ending.topics:
                return  # compared later, when the partitions of the topics are known
            what, start, end = "offset", starting.offsets, ending.offsets
        case SpecificTimestamps(), SpecificTimestamps():
            what, start, end = "timestamp", starting.timestamps, ending.timestamps
        case _:
            return
    check_same_partitions(start, end)
    for partition, offset in sorted(start.items()):
        check_order(partition, offset, end[partition], what=what)


def _limit(texts: OptionTexts, side: str, default: OffsetLimit) -> OffsetLimit:
    """Return one limit: the global timestamp, else per-partition timestamps, else offsets."""
    strategy = _strategy(texts)
    time = texts.integer(f"{side}Timestamp", FROM_0)
    if time is not None:
        return GlobalTimestamp(time, strategy)
    name = f"{side}OffsetsByTimestamp"
    if (text := texts.text(name)) is not None:
        return _parsed(name, lambda value: parse_timestamps(value, strategy), text)
    name = f"{side}Offsets"
    if (text := texts.text(name)) is None:
        return default
    if text.lower() == "earliest":
        return Earliest()
    return Latest() if text.lower() == "latest" else _parsed(name, parse_offsets, text)


def _strategy(texts: OptionTexts) -> NoMatch:
    text = (texts.text(_STRATEGY) or NoMatch.ERROR.value).lower()
    for each in NoMatch:
        if text == each.value:
            return each
    raise ConfigError(f"{_STRATEGY} = {text!r} is not allowed; allowed: error, latest")


def _parsed(name: str, parse: Callable[[str], _Read], text: str) -> _Read:
    try:
        return parse(text)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None


def _check_start(limit: OffsetLimit) -> None:
    why = "can't be latest for batch queries on Kafka: there would be nothing to read"
    if isinstance(limit, Latest):
        raise ConfigError(f"starting offset {why}; set startingOffsets to earliest or to offsets")
    if isinstance(limit, SpecificOffsets) and (name := _with(limit, LATEST)):
        raise ConfigError(f"starting offset for {name} {why}; give an offset, or -2 for earliest")


def _check_end(limit: OffsetLimit) -> None:
    why = "can't be earliest for batch queries on Kafka: there would be nothing to read"
    if isinstance(limit, Earliest):
        raise ConfigError(f"ending offset {why}; set endingOffsets to latest or to offsets")
    if isinstance(limit, SpecificOffsets) and (name := _with(limit, EARLIEST)):
        raise ConfigError(f"ending offset for {name} {why}; give an offset, or -1 for latest")


def _with(limit: SpecificOffsets, end: int) -> str | None:
    """Return the first partition or topic whose offset is ``end``, or None."""
    named = [str(each) for each, offset in sorted(limit.offsets.items()) if offset == end]
    named += sorted(topic for topic, offset in limit.topics.items() if offset == end)
    return named[0] if named else None
