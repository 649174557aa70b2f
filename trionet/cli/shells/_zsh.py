"""Completion for zsh."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from ._tree import Place, Value

_HEAD = """\
#compdef trionet
# zsh completion for trionet; written by `trionet completion zsh`.

_trionet() {
    local at="" word i before=${words[CURRENT-1]}
    local -a found
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        case "$at/$word" in
"""
_MIDDLE = """\
                at="$at/$word" ;;
        esac
    done
    case "$at $before" in
"""
_BETWEEN = """\
    esac
    case "$at" in
"""
_TAIL = """\
    esac
}

if [[ $funcstack[1] == _trionet ]]; then
    _trionet "$@"
else
    compdef _trionet trionet
fi
"""


def script(places: Iterable[Place]) -> str:
    """The text of the file."""
    found = list(places)
    below = ["".join(f"/{word}" for word in place.words) for place in found if place.words]
    return "".join(
        (
            _HEAD,
            f"            {' | '.join(f'({path})' for path in below)})\n",
            _MIDDLE,
            *(line for place in found for line in _values(place)),
            _BETWEEN,
            *(line for place in found for line in _words(place)),
            _TAIL,
        )
    )


def _path(place: Place) -> str:
    return "".join(f"/{word}" for word in place.words)


def _values(place: Place) -> Iterator[str]:
    for option in place.options:
        if option.value is not None:
            patterns = "|".join(shlex.quote(f"{_path(place)} {flag}") for flag in option.flags)
            yield f"        ({patterns}))\n            {_completed(option.value)}\n"
            yield "            return ;;\n"


def _words(place: Place) -> Iterator[str]:
    yield f"        ({shlex.quote(_path(place))}))\n"
    yield "            if [[ ${words[CURRENT]} == -* ]]; then\n"
    flags = ((flag, option.help) for option in place.options for flag in option.flags)
    yield from _described("-o option", flags)
    if place.commands:
        yield "            else\n"
        yield from _described("command", place.commands)
    elif place.value is not None and (place.value.choices or place.value.is_file):
        yield f"            else\n                {_completed(place.value)}\n"
    yield "            fi ;;\n"


def _described(tag: str, words: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield "                found=(\n"
    for word, text in words:
        yield f"                    {shlex.quote(f'{word}:{text}')}\n"
    yield f"                )\n                _describe {tag} found\n"


def _completed(value: Value) -> str:
    if value.choices:
        return f"compadd -- {' '.join(map(shlex.quote, value.choices))}"
    return "_files" if value.is_file else "_message value"
