"""The page of APIs: what the broker serves, what the clients use, and why the rest is left out.

Versions, callers and gaps are read from the code; the reasons why an API is not served stand here,
and an API without one is an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from trionet.broker.run import _served_apis as served
from trionet.protocol import api_keys
from trionet.protocol.messages.registry import APIS

from .apis import LEFT_OUT, REMOVED_API_KEYS

PACKAGE: Final = Path(__file__).parents[3] / "trionet"
CLIENT: Final = PACKAGE / "client"

_KIP_848: Final = "groups are those of the classic protocol, not of KIP-848"
_SHARE: Final = "there are no share groups"
_STREAMS: Final = "there are no Streams groups"
_TOKENS: Final = "there are no delegation tokens"
_QUOTAS: Final = "there are no quotas for bytes and requests"
_REPLICAS: Final = "a partition has one log, and nothing to move or elect by hand"
_SCRAM: Final = "credentials are written by `trionet broker --add-scram`"
_QUORUM: Final = "there is no quorum of controllers"

#: APIs that have codecs and are not served, by the name of their module.
NOT_SERVED: Final = {
    "alter_replica_log_dirs": "there is one data directory",
    "create_delegation_token": _TOKENS,
    "renew_delegation_token": _TOKENS,
    "expire_delegation_token": _TOKENS,
    "describe_delegation_token": _TOKENS,
    "elect_leaders": _REPLICAS,
    "alter_partition_reassignments": _REPLICAS,
    "list_partition_reassignments": _REPLICAS,
    "describe_client_quotas": _QUOTAS,
    "alter_client_quotas": _QUOTAS,
    "describe_user_scram_credentials": _SCRAM,
    "alter_user_scram_credentials": _SCRAM,
    "describe_quorum": _QUORUM,
    "add_raft_voter": _QUORUM,
    "remove_raft_voter": _QUORUM,
    "unregister_broker": "brokers do not register",
    "consumer_group_heartbeat": _KIP_848,
    "consumer_group_describe": _KIP_848,
    "get_telemetry_subscriptions": "metrics of clients are not collected (KIP-714)",
    "push_telemetry": "metrics of clients are not collected (KIP-714)",
    "share_group_heartbeat": _SHARE,
    "share_group_describe": _SHARE,
    "share_fetch": _SHARE,
    "share_acknowledge": _SHARE,
    "streams_group_heartbeat": _STREAMS,
    "streams_group_describe": _STREAMS,
    "describe_share_group_offsets": _SHARE,
    "alter_share_group_offsets": _SHARE,
    "delete_share_group_offsets": _SHARE,
}
_REMOVED: Final = "Kafka 4.0 has removed it"

#: Folders below ``trionet/client`` whose requests belong to one of the clients; the rest is common.
_CLIENTS: Final = {"producer": "producer", "consumer": "consumer", "admin": "admin"}
_COMMON: Final = "all"

HEAD: Final = """\
# Coverage of Kafka's protocol

<!-- Written by `python3 tests generate`; do not edit. -->

Every API that has a number in Apache Kafka {kafka}: {total}.
The broker serves {served} of them, and the clients use {used}.
What the broker does in each is in [Protocol](../protocol.md).

* *Broker*: the versions that trionet's broker serves.
* *Codec*: the versions that `trionet.protocol` reads and writes.
* *Clients*: which of trionet's clients sends it, to any broker, in the newest version that both
  have; *all* is what every client does.
* *Left out on purpose*: what the broker does not do, and why.

The clients have no groups of KIP-848 or of Streams, and no share groups of their own; the admin
client describes those of others.
Settings are altered by IncrementalAlterConfigs alone (KIP-339).

"""


def coverage_page(kafka: str) -> str:
    """The page, in Markdown.

    Args:
        kafka: the version of Kafka whose protocol it is.
    """
    users = _users()
    rows = [_row(key, users.get(APIS[key][0], set()) if key in APIS else set()) for key in _keys()]
    head = HEAD.format(kafka=kafka, total=len(rows), served=len(_served()), used=len(users))
    titles = "| API | Key | Broker | Codec | Clients | Left out on purpose |"
    return f"{head}{titles}\n|---|---|---|---|---|---|\n" + "".join(f"{row}\n" for row in rows)


def _keys() -> list[int]:
    names = {key: api_keys.name_of(key) for key in range(max(APIS) + 1)}
    known = {_module(name) for name in names.values()}
    missing = {*LEFT_OUT, *NOT_SERVED} - known
    assert not missing, f"no APIs of Kafka: {missing}"
    return list(names)


def _row(key: int, users: set[str]) -> str:
    name = api_keys.name_of(key)
    served_as = _served().get(key)
    codec = _versions(APIS[key][2], APIS[key][3]) if key in APIS else ""
    if served_as is None:
        cells = [name, str(key), "", codec, _sorted(users), _reason(key, name)]
    else:
        low, high, gaps = served_as
        link = f"[{name}](../protocol.md#{name.lower()})"
        cells = [link, str(key), _versions(low, high), codec, _sorted(users), gaps]
    return f"| {' | '.join(cells)} |"


def _versions(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _sorted(users: set[str]) -> str:
    return _COMMON if _COMMON in users else ", ".join(sorted(users, reverse=True))


def _reason(key: int, name: str) -> str:
    if key in REMOVED_API_KEYS:
        return _REMOVED
    module = _module(name)
    return f"it {LEFT_OUT[module]}" if module in LEFT_OUT else NOT_SERVED[module]


def _module(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _served() -> dict[int, tuple[int, int, str]]:
    """Of each API that is served: the lowest and the highest version, and its gaps."""
    return {
        api.key: (api.min_version, api.max_version, gaps(handler_docstring(api.key)))
        for api in served.APIS
    }


def handler_docstring(key: int) -> str:
    """What is said of an API: by its handler, or by the module if that has no other."""
    if key == api_keys.API_VERSIONS:
        tree = ast.parse((PACKAGE / "broker/api/_api_versions.py").read_text("utf-8"))
        return ast.get_docstring(tree) or ""
    module, handler = handler_of(key)
    return ast.get_docstring(handler) or ast.get_docstring(module) or ""


def handler_of(key: int) -> tuple[ast.Module, ast.AsyncFunctionDef]:
    """The source of an API's handler, and of its module: compiled, they have none."""
    [found] = [each for each in _handlers() if each[0] == f"api_keys.{APIS[key][0].upper()}"]
    return found[1:]


@cache
def _handlers() -> list[tuple[str, ast.Module, ast.AsyncFunctionDef]]:
    """All functions that declare an API, with its key and their modules."""
    return [
        (ast.unparse(declared.args[0]), module, function)
        for path in sorted((PACKAGE / "broker/handlers").rglob("*.py"))
        for module in [ast.parse(path.read_text("utf-8"))]
        for function in module.body
        if isinstance(function, ast.AsyncFunctionDef)
        for declared in function.decorator_list
        if isinstance(declared, ast.Call) and "serves" == ast.unparse(declared.func)
    ]


def gaps(docstring: str) -> str:
    """What a handler's docstring says that it does not do."""
    found = re.findall(r"Gaps?: (.*?)(?:\n\n|\Z)", docstring, re.DOTALL)
    return " ".join(" ".join(found).replace("``", "`").split()).removesuffix(".")


def _users() -> dict[str, set[str]]:
    """The clients that send each API, by the name of its module."""
    found: dict[str, set[str]] = {}
    for path in sorted(CLIENT.rglob("*.py")):
        folder = path.relative_to(CLIENT).parts[0]
        for module in requests_in(path.read_text("utf-8")):
            found.setdefault(module, set()).add(_CLIENTS.get(folder, _COMMON))
    return found


def requests_in(source: str) -> Iterator[str]:
    """The modules of ``protocol.messages`` whose requests a module makes."""
    tree = ast.parse(source)
    modules: dict[str, str] = {}  # by the name that they have in this module
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        package, _, module = node.module.rpartition(".")
        if node.module.endswith("protocol.messages"):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif package.endswith("protocol.messages") and any(
            _is_request(alias.name, module) for alias in node.names
        ):
            yield module
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id, "")
            if _is_request(node.attr, module):
                yield module


def _is_request(name: str, module: str) -> bool:
    """Whether a class of a module of messages is the request of its API."""
    return name.lower() == f"{module.replace('_', '')}request"
