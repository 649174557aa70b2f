"""Builds HTML and SVG with the standard library's elements, which escape all text.

Strings supplied by clients are added to a page only as text or attribute values of these elements,
never as markup.
"""

from __future__ import annotations

from typing import Final, TypeAlias
from xml.etree.ElementTree import Element, tostring

Child: TypeAlias = "Element | str"

#: The number of decimal places in a drawing; the unit is about a pixel.
_DIGITS: Final = 1


def node(tag: str, *children: Child, **attributes: str | float) -> Element:
    """Create an element.

    Args:
        tag: the name of the element.
        children: the child elements and texts.
        attributes: the attributes; a trailing underscore in a name is removed, other underscores
            become dashes.
    """
    element = Element(tag)
    for name, value in attributes.items():
        text = value if isinstance(value, str) else number(value)
        element.set(name.rstrip("_").replace("_", "-"), text)
    append(element, *children)
    return element


def append(parent: Element, *children: Child) -> None:
    """Append children (elements or text) to an element."""
    for child in children:
        if not isinstance(child, str):
            parent.append(child)
        elif len(parent):
            parent[-1].tail = (parent[-1].tail or "") + child
        else:
            parent.text = (parent.text or "") + child


def number(value: float) -> str:
    """Format a coordinate as briefly as possible."""
    return f"{value:.{_DIGITS}f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def page(root: Element) -> str:
    """Serialize a page, with its doctype."""
    return f"<!doctype html>\n{tostring(root, encoding='unicode', method='html')}\n"
