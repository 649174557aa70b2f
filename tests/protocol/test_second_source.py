"""The facts that kio's metadata lacks, against the schema that kafka-python ships.

It is written in Kafka's own format: names with their units, and which fields are ignorable.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from protocol.generator.apis import APIS, IGNORABLE, NULL_BY_DEFAULT
from protocol.generator.classes import Merged, merge
from protocol.samples import api_of


def schemas() -> dict[str, dict[str, Any]]:
    found = importlib.util.find_spec("kafka")
    if found is None or found.origin is None:
        pytest.skip("kafka-python is not installed")
    folder = Path(found.origin).parent / "protocol" / "schemas" / "resources"
    texts = (path.read_text("utf-8") for path in sorted(folder.glob("*.json")))
    parsed = [json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)) for text in texts]
    return {schema["name"]: schema for schema in parsed}


def snake_case(name: str) -> str:
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def numbers(versions: str, known: list[int]) -> list[int]:
    """The versions that a range of Kafka's schema names, of those we know."""
    if versions == "none":
        return []
    first, _, last = versions.partition("-")
    low = int(first.rstrip("+"))
    high = int(last) if last else known[-1] if first.endswith("+") else low
    return [version for version in known if low <= version <= high]


def fields_of(
    schema: dict[str, Any], known: list[int]
) -> Iterator[tuple[str, dict[str, Any], list[int]]]:
    """Every field with the name of its struct, and the versions that have both."""
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())}

    def walk(
        owner: str, fields: list[dict[str, Any]], known: list[int]
    ) -> Iterator[tuple[str, dict[str, Any], list[int]]]:
        for field in fields:
            versions = numbers(field["versions"], known)
            if versions:
                yield owner, field, versions
                inner = field["type"].removeprefix("[]")
                yield from walk(inner, field.get("fields") or common.get(inner, []), versions)

    yield from walk(schema["name"], schema["fields"], known)


class Pair(NamedTuple):
    """A field of theirs beside ours, and the versions of the message that both schemas know."""

    message: str
    owner: str
    theirs: dict[str, Any]
    their_versions: list[int]
    ours: Merged
    known: list[int]


def pairs() -> Iterator[Pair]:
    theirs = schemas()
    for module_name in APIS:
        for message in api_of(module_name).messages.values():
            if message.name not in theirs:
                continue
            schema = theirs[message.name]
            known = numbers(schema["validVersions"], sorted(message.versions))
            merged = merge(message)
            for owner, field, versions in fields_of(schema, known):
                name = owner if owner in merged else message.side.capitalize() + owner
                found = {each.field.name: each for each in merged[name]}
                ours = found[snake_case(field["name"])]
                yield Pair(message.name, name, field, versions, ours, known)


def test_names_versions_tags_and_nulls_agree() -> None:
    held_by_theirs: dict[tuple[str, str], set[int]] = {}  # a struct may stand in two places
    held_by_ours: dict[tuple[str, str], set[int]] = {}
    for pair in pairs():
        where = (f"{pair.message}: {pair.owner}", pair.ours.field.name)
        tagged = numbers(pair.theirs.get("taggedVersions", "none"), pair.known)
        nullable = set(numbers(pair.theirs.get("nullableVersions", "none"), pair.known))
        held_by_theirs.setdefault(where, set()).update(pair.their_versions)
        held_by_ours[where] = set(pair.ours.versions) & set(pair.known)

        assert pair.ours.field.tag == (pair.theirs["tag"] if tagged else None), where
        assert set(pair.ours.nullable) & set(pair.known) == nullable & held_by_ours[where], where
    assert held_by_ours == held_by_theirs
    assert len(held_by_ours) > 600


def test_arrays_that_are_null_by_default_agree() -> None:
    arrays = [pair for pair in pairs() if pair.ours.field.array]
    differing = {
        (pair.owner, pair.ours.field.name)
        for pair in arrays
        if (pair.ours.field.default == "None") != (pair.theirs.get("default") == "null")
    }

    assert set() == differing
    assert len(arrays) > 100


def test_what_is_said_to_be_null_by_default_is() -> None:
    nullable = {
        (owner, each.field.name)
        for module_name in APIS
        for message in api_of(module_name).messages.values()
        for owner, fields in merge(message).items()
        for each in fields
        if each.nullable and each.field.default == "None"
    }

    assert nullable >= NULL_BY_DEFAULT


def test_ignorable_request_fields_agree() -> None:
    ignorable: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}
    for pair in pairs():
        lacking = pair.their_versions != pair.known
        if pair.message.endswith("Request") and lacking:
            ignorable[pair.theirs.get("ignorable", False)].add((pair.owner, pair.ours.field.name))

    assert ignorable[True] - ignorable[False] <= IGNORABLE
    assert not ignorable[False] & IGNORABLE
