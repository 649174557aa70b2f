"""HTML and SVG as elements of the standard library, which escapes all that is put into them. Pure.

What clients call themselves gets into a page only through here, as text or as the value of an
attribute, and never as markup.
"""

from __future__ import annotations

from typing import Final, TypeAlias
from xml.etree.ElementTree import Element, tostring

Child: TypeAlias = "Element | str"

#: Digits behind the point in a drawing, whose unit is about a pixel.
_DIGITS: Final = 1


def node(tag: str, *children: Child, **attributes: str | float) -> Element:
    """One element.

    Args:
        tag: its name.
        children: elements, and texts.
        attributes: an underscore stands for a dash, and at the end of a name for nothing.
    """
    made = Element(tag)
    for name, value in attributes.items():
        text = value if isinstance(value, str) else number(value)
        made.set(name.rstrip("_").replace("_", "-"), text)
    append(made, *children)
    return made


def append(parent: Element, *children: Child) -> None:
    """Put elements and texts behind what an element has."""
    for child in children:
        if not isinstance(child, str):
            parent.append(child)
        elif len(parent):
            parent[-1].tail = (parent[-1].tail or "") + child
        else:
            parent.text = (parent.text or "") + child


def number(value: float) -> str:
    """A coordinate, as short as it can be."""
    return f"{value:.{_DIGITS}f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def page(root: Element) -> str:
    """The whole page as text."""
    return f"<!doctype html>\n{tostring(root, encoding='unicode', method='html')}\n"
