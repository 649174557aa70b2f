"""Reads records from a JSON Lines file.

Each line is an object with ``topic`` and any of ``partition``, ``key``, ``value``, ``headers`` and
``timestamp`` (ms since the epoch). A key or value is a string, null, other JSON, which is stored as
JSON text, or ``{"base64": "..."}`` for bytes that are not text. Headers are an object or a list of
pairs. The output of ``kcat -C -J`` is also accepted.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ._records import NewRecord, new_record

# kcat's names of fields, and fields that are ignored.
_KCAT_NAMES = {"payload": "value", "ts": "timestamp"}
_KCAT_EXTRA = ("offset", "tstype", "broker", "key_schema_id", "value_schema_id")


def read_records(path: str | os.PathLike[str]) -> dict[str, list[NewRecord]]:
    """Return the records in a file, grouped by topic.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is invalid; the message contains the line number and the reason.
    """
    found: dict[str, list[NewRecord]] = {}
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            topic, record = _record(json.loads(line))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{os.fspath(path)}, line {number}: {error}") from error
        found.setdefault(topic, []).append(record)
    return found


def _record(fields: object) -> tuple[str, NewRecord]:
    if not isinstance(fields, dict):
        raise TypeError("not a JSON object")
    named: dict[str, Any] = {
        _KCAT_NAMES.get(str(name), str(name)): value for name, value in fields.items()
    }
    topic = named.pop("topic", None)
    if not isinstance(topic, str):
        raise TypeError("topic is missing or not a string")
    for name in _KCAT_EXTRA:
        named.pop(name, None)
    for name in ("key", "value"):
        if name in named:
            named[name] = _bytes(named[name])
    if isinstance(named.get("headers"), Mapping):
        named["headers"] = {name: _bytes(value) for name, value in named["headers"].items()}
    elif isinstance(named.get("headers"), list):
        named["headers"] = _pairs(named["headers"])
    return topic, new_record(named)


def _pairs(headers: list[Any]) -> list[Any]:
    if all(isinstance(each, str) for each in headers):  # kcat's: alternating names and values
        return list(zip(headers[::2], headers[1::2], strict=True))
    return [[each[0], _bytes(each[1])] for each in headers]


def _bytes(value: object) -> str | bytes | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return base64.b64decode(value["base64"], validate=True)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
