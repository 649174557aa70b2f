"""``trionet configs acls``: list, create and delete ACLs."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet._util._text import counted

from ..arguments._parser import Subcommands, Verb, run
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._confirmation import add_confirmation_argument, confirmed
from ..terminal._output import add_format_arguments, print_message, write, write_results
from ._acl_arguments import acl_table, add_acl_arguments, bindings, filters

if TYPE_CHECKING:
    from trionet.client.admin._access import AclBinding, AclFilter
    from trionet.client.admin._admin import Admin


def _add_list_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    add_acl_arguments(parser, is_filter=True)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def _run_list(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status 0."""
    return run_with_admin(arguments, partial(_list, arguments, filters(arguments)))


async def _list(arguments: argparse.Namespace, filters_: list[AclFilter], admin: Admin) -> int:
    import trio

    await trio.lowlevel.checkpoint()
    found = {entry: None for each in filters_ for entry in await admin.describe_acls(each)}
    write(arguments.format, acl_table(list(found)))
    return 0


def _add_create_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Allow or deny operations on resources. One ACL is created for each combination of "
        "principal, host, operation and resource."
    )
    add_acl_arguments(parser, is_filter=False)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def _run_create(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were created, 1 if some were not."""
    return run_with_admin(arguments, partial(_create, arguments, bindings(arguments)))


async def _create(arguments: argparse.Namespace, entries: list[AclBinding], admin: Admin) -> int:
    results = await admin.create_acls(entries)
    return write_results(
        arguments,
        acl_table([each for each in entries if results[each] is None]),
        results.errors.values(),
    )


def _add_delete_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = "Delete the matching ACLs, all of them if no option is given."
    add_acl_arguments(parser, is_filter=True)
    add_confirmation_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def _run_delete(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were deleted, 1 if some were not."""
    return run_with_admin(arguments, partial(_delete, arguments, filters(arguments)))


async def _delete(arguments: argparse.Namespace, filters_: list[AclFilter], admin: Admin) -> int:
    import trio

    await trio.lowlevel.checkpoint()
    found = {entry: None for each in filters_ for entry in await admin.describe_acls(each)}
    if not found:
        print_message(arguments, "no matching ACLs")
        return 1
    if not confirmed(arguments, f"delete {counted(len(found), 'ACL')}"):
        return 1
    results = await admin.delete_acls(filters_)
    deleted, errors = [], list(results.errors.values())
    for matched in results.values():
        if isinstance(matched, dict):
            errors += matched.errors.values()
            deleted += [entry for entry, error in matched.items() if error is None]
    return write_results(arguments, acl_table(list(dict.fromkeys(deleted))), errors)


COMMANDS: Final = {
    "list": Verb("list ACLs", _add_list_arguments, _run_list),
    "create": Verb("allow or deny operations on resources", _add_create_arguments, _run_create),
    "delete": Verb("delete ACLs", _add_delete_arguments, _run_delete),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
