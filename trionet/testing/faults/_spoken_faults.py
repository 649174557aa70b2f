"""Faults in words, as a person types them into the dashboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ..._util._text import nearest
from .._seen_requests import Fault
from ._faults import Faults

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

#: The word that stands for all APIs, and for any number of requests.
ALL: Final = "all"
#: What a fault of some requests can be limited to; the names of parameters.
_LIMITS: Final = ("apis", "times", "topic", "client_id", "connection")
#: The faults that are about a broker and not about some requests, and what each can be limited to.
_OF_BROKERS: Final[Mapping[str, Sequence[str]]] = {
    "full-disk": ("topic",),
    "stop-reading": ("client_id", "connection"),
}
ALLOWED: Final = (
    "an error such as NOT_LEADER_OR_FOLLOWER, delay SECONDS, hold, swallow, close, reset, cut,"
    " corrupt, throttle MS, full-disk, stop-reading"
)


def inject(faults: Faults, words: Mapping[str, str]) -> Fault:
    """Add the fault that some words describe.

    Args:
        faults: adds the fault.
        words: the ``fault``, one of :data:`ALLOWED`; the ``apis`` whose requests it applies to,
            separated by commas or ``all``; the number of requests (``times``) or ``all``, 1 by
            default; and a ``topic``, a ``client_id`` and a ``connection`` to which it is limited.
            ``full-disk`` takes only the topic, ``stop-reading`` only the last two. An empty word
            is as good as none.

    Raises:
        ValueError: a word is not allowed; the message says what is.
    """
    name, *arguments = words.get("fault", "").split() or [""]
    _check_words(name, words)
    options: dict[str, Any] = {
        key: words[key] for key in ("topic", "client_id", "connection") if words.get(key)
    }
    if name in _OF_BROKERS:
        _expect(name, arguments, 0)
        return _of_broker(faults, name, options)
    apis = tuple(each.strip() for each in words.get("apis", ALL).split(","))
    chosen: Any = None if apis in ((ALL,), ("",)) else apis
    options["times"] = _times(words.get("times", ""))
    add = _ADD.get(name)
    if add is not None:
        _expect(name, arguments, 1 if name in _NUMBERED else 0)
        return add(faults, chosen, [_number(name, each) for each in arguments], options)
    if not name.isupper():
        raise ValueError(f"{name!r} is not a fault; allowed: {ALLOWED}")
    _expect(name, arguments, 0)
    return faults.fail(chosen, name, **options)


def _check_words(name: str, words: Mapping[str, str]) -> None:
    """Refuse what a fault does not take: ignored, it would hit more than was meant.

    Raises:
        ValueError: a word is unknown, or the fault does not take it.
    """
    for word in words:
        if word not in ("fault", *_LIMITS):
            raise ValueError(
                f"{word!r} is not allowed{nearest(word, _LIMITS)};"
                f" allowed: fault, {', '.join(_LIMITS)}"
            )
    takes = _OF_BROKERS.get(name, _LIMITS)
    for word, text in words.items():
        if text and word != "fault" and word not in takes:
            raise ValueError(f"{name} does not take {word}; allowed: {', '.join(takes)}")


def _of_broker(faults: Faults, name: str, options: Mapping[str, Any]) -> Fault:
    if name == "full-disk":
        return faults.fill_disk(options.get("topic"))
    return faults.stop_reading(
        connection=options.get("connection"), client_id=options.get("client_id")
    )


def _times(text: str) -> int | None:
    if text == ALL:
        return None
    if text and not (text.isdecimal() and int(text)):
        raise ValueError(f"times = {text!r} is not allowed; allowed: 1 or more, or {ALL}")
    return int(text or 1)


def _number(name: str, text: str) -> float:
    try:
        return _NUMBERED[name](text)
    except ValueError:
        raise ValueError(f"{name} {text} is not allowed; {name} takes {_TAKES[name]}") from None


def _expect(name: str, arguments: Sequence[str], count: int) -> None:
    if len(arguments) != count:
        takes = "a number, as in " + f"{name} 1" if count else "nothing after it"
        raise ValueError(f"{name} takes {takes}")


_Add = Callable[[Faults, Any, Sequence[float], Mapping[str, Any]], Fault]


def _plain(method: Callable[..., Fault], **more: Any) -> _Add:
    return lambda faults, apis, _, options: method(faults, apis, **more, **options)


def _numbered(method: Callable[..., Fault]) -> _Add:
    return lambda faults, apis, numbers, options: method(faults, apis, numbers[0], **options)


_NUMBERED: Final[Mapping[str, Callable[[str], float]]] = {
    "delay": float,
    "throttle": int,
}
_TAKES: Final = {
    "delay": "a number of seconds",
    "throttle": "a whole number of milliseconds",
}
_ADD: Final[Mapping[str, _Add]] = {
    "delay": _numbered(Faults.delay),
    "throttle": _numbered(partial(Faults.throttle, mute=True)),
    "hold": _plain(Faults.hold),
    "swallow": _plain(Faults.swallow),
    "close": _plain(Faults.close),
    "reset": _plain(Faults.close, reset=True),
    "cut": _plain(Faults.cut),
    "corrupt": _plain(Faults.corrupt),
}
