"""How Sphinx builds these pages; ``python3 docs`` has it do so."""

from __future__ import annotations

import re
import sys
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs

# For what lies beside this file.
sys.path.insert(0, str(Path(__file__).parent))

import trionet
from trionet.broker import SYSTEM_DISK
from trionet.net import SYSTEM
from trionet.server import SIZE_PREFIXED

#: What --tag was given, put here by sphinx-build.
TAGS: Any = globals()["tags"]

API = Path(__file__).parent / "api"
#: Classes that users get from a call and never make: written with empty parentheses there.
NEVER_MADE = {
    name
    for page in API.glob("*.rst")
    for name in re.findall(r"^\.\. autoclass:: (\w+)\(\)$", page.read_text("utf-8"), re.MULTILINE)
}

#: The public name of each thing, by the module that defines it and its name there.
PUBLIC_NAMES = {
    f"{value.__module__}.{value.__qualname__}": f"{module}.{name}"
    for page in API.glob("*.rst")
    for module, names in re.findall(
        r"^\.\. currentmodule:: (\S+)$(.*?)(?=^\.\. currentmodule|\Z)",
        page.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    for name in re.findall(r"^\.\. auto(?:class|exception|function):: (\w+)", names, re.MULTILINE)
    for value in [getattr(import_module(module), name)]
}

project = "trionet"
author = "the authors of trionet"
version = release = trionet.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "sphinxcontrib_trio",
    "pictures",
]
# README.md is the index of those who read this folder as it is; index.md has it as well.
exclude_patterns = ["README.md"]
root_doc = "index"

# Links to headings, as the pages have them for who reads them without Sphinx.
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Attributes of a class are in its docstring; they are not repeated as its fields.
napoleon_use_ivar = True
add_module_names = False
python_use_unqualified_type_names = True

intersphinx_mapping = (
    {
        "python": (f"https://docs.python.org/{sys.version_info[0]}", None),
        "trio": ("https://trio.readthedocs.io/en/stable", None),
    }
    if TAGS.has("online")
    else {}
)

html_theme = "furo"
html_title = f"trionet {release}"
html_copy_source = False
html_show_copyright = False


def mend_docstring(
    _app: object, what: str, name: str, _obj: object, _options: object, lines: list[str]
) -> None:
    """Prepare a docstring for Napoleon.

    Arguments of classes that users do not create are left out, and errors that are documented
    together may be in two lines.
    """
    if what == "class" and name.rpartition(".")[2] in NEVER_MADE:
        leave_out_arguments(lines)
    if what in ("attribute", "data", "property"):
        lines.insert(0, "")  # Napoleon takes what is before a colon in the first line for a type
    for number in reversed(range(len(lines) - 1)):
        is_list_of_errors = re.fullmatch(r" {4}[A-Z][\w.]*(?:, [A-Za-z][\w.]*)*,", lines[number])
        if is_list_of_errors:
            lines[number] += " " + lines.pop(number + 1).strip()


def leave_out_arguments(lines: list[str]) -> None:
    """Take the section ``Args`` out of a docstring."""
    if "Args:" not in lines:
        return
    begin = end = lines.index("Args:")
    end += 1
    while end < len(lines) and (not lines[end] or lines[end].startswith(" ")):
        end += 1
    del lines[begin:end]


#: Defaults that have a name, by what Sphinx shows of them.
NAMED = {
    re.sub(" at 0x[0-9a-f]+", "", repr(value)): name
    for name, value in {
        "SYSTEM": SYSTEM,
        "SYSTEM_DISK": SYSTEM_DISK,
        "SIZE_PREFIXED": SIZE_PREFIXED,
    }.items()
}


def name_defaults(
    _app: object,
    _what: str,
    _name: str,
    obj: object,
    _options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Show defaults by their names, where Sphinx has not found these in the source."""
    for shown, value in NAMED.items():
        signature = signature and signature.replace(shown, value)
    if signature and isinstance(obj, type) and attrs.has(obj):
        signature = show_defaults(signature, obj)
    return signature, returned


def show_defaults(signature: str, value: type[attrs.AttrsInstance]) -> str:
    """Show the defaults of attrs' fields, not where the generated ``__init__`` has them from."""
    for field in attrs.fields(value):
        shown = text_of_default(field.default)
        signature = signature.replace(f"attr_dict['{field.name}'].default", shown)
        signature = re.sub(rf"(\b{field.alias}: [^=]+) = NOTHING", rf"\1 = {shown}", signature)
    return signature


def text_of_default(default: Any) -> str:
    """A default as one would write it; dots for a value that a function computes."""
    makes = getattr(default, "factory", None)
    if makes is not None:
        name = makes.__name__
        return {"dict": "{}", "tuple": "()", "<lambda>": "..."}.get(name, f"{name}()")
    if isinstance(default, Enum):
        return f"{type(default).__name__}.{default.name}"
    return NAMED.get(repr(default), repr(default))


def link_public_name(_app: Any, environment: Any, node: Any, content: Any) -> Any:
    """Link what an annotation calls by its private module to the page of its public name."""
    public = PUBLIC_NAMES.get(node.get("reftarget", ""))
    if node.get("refdomain") != "py" or public is None:
        return None
    domain = environment.domains["py"]
    found = domain.resolve_any_xref(
        environment, node["refdoc"], environment.app.builder, public, node, content
    )
    return found[0][1] if found else None


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("missing-reference", link_public_name)
    app.connect("autodoc-process-signature", name_defaults)
    app.connect("autodoc-process-docstring", mend_docstring, priority=100)
