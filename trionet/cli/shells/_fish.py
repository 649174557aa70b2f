"""Completion for fish."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ._tree import Option, Place, Value

_HEAD = """\
# fish completion for trionet; written by `trionet completion fish`.

function __trionet_at --description 'Whether these are the commands on the line'
    set -l at
    for word in (commandline -opc)[2..-1]
        if contains -- (string join -- / $at $word) $__trionet_places
            set -a at $word
        end
    end
    test "$argv" = "$at"
end

complete -c trionet -f
"""


def script(places: Iterable[Place]) -> str:
    """The text of the file."""
    found = list(places)
    paths = " ".join("/".join(place.words) for place in found if place.words)
    lines = (line for place in found for line in _lines(place))
    return "".join((_HEAD, f"set -g __trionet_places {paths}\n", *lines))


def _lines(place: Place) -> Iterator[str]:
    here = f"complete -c trionet -n {_quoted(' '.join(['__trionet_at', *place.words]))}"
    for name, text in place.commands:
        yield f"{here} -a {_quoted(name)} -d {_quoted(text)}\n"
    for option in place.options:
        yield f"{here}{_option(option)} -d {_quoted(option.help)}\n"
    if place.value is not None and (place.value.choices or place.value.is_file):
        yield f"{here}{_value(place.value)}\n"


def _option(option: Option) -> str:
    flags = "".join(
        f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}" for flag in option.flags
    )
    return flags if option.value is None else f"{flags} -r{_value(option.value)}"


def _value(value: Value) -> str:
    if value.choices:
        return f" -f -a {_quoted(' '.join(value.choices))}"
    return " -F" if value.is_file else " -f"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
