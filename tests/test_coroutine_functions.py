"""Public async functions are Python's own coroutine functions, compiled or not.

A compiled one would have no docstring, and the coroutine that it returns would not warn when a
program forgets to await it: its records would be lost without a word. What is async is read from
the sources, because an extension module does not show it.
"""

from __future__ import annotations

import ast
import gc
import inspect
import re
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import trio

from trionet import (
    Admin,
    Consumer,
    NetworkClient,
    Producer,
    TopicPartition,
    open_admin,
    open_broker,
    open_consumer,
    open_network_client,
    open_producer,
)

#: What users import from; docs/reference has a page for each.
PACKAGES = [
    "trionet",
    "trionet.broker",
    "trionet.client",
    "trionet.client.admin",
    "trionet.client.consumer",
    "trionet.client.consumer.assignors",
    "trionet.client.producer",
    "trionet.server",
    "trionet.spark",
    "trionet.testing",
]
NAMES = [(package, name) for package in PACKAGES for name in sorted(import_module(package).__all__)]


@cache
def source(module: str) -> ast.Module:
    """The source of a module; in the compiled package it lies beside the extension module."""
    file = import_module(module).__file__
    assert file is not None
    path = Path(file)
    return ast.parse(path.with_name(f"{path.name.partition('.')[0]}.py").read_text("utf-8"))


def async_functions(module: str, *classes: str) -> Iterator[ast.AsyncFunctionDef]:
    """Those in the body of a module, or of a class there, that are not private."""
    body = source(module).body
    for name in classes:
        [found] = [each for each in body if isinstance(each, ast.ClassDef) and each.name == name]
        body = found.body
    for each in body:
        if isinstance(each, ast.AsyncFunctionDef) and not re.match("_[^_]", each.name):
            yield each


def public_async_functions(value: object) -> dict[str, tuple[Any, ast.AsyncFunctionDef]]:
    """What a public name has of them, as it is at run time and as it is written."""
    found: dict[str, tuple[Any, ast.AsyncFunctionDef]] = {}
    if isinstance(value, type):
        for each in reversed(value.__mro__):
            if each.__module__.partition(".")[0] == "trionet":
                for function in async_functions(each.__module__, each.__name__):
                    found[function.name] = (getattr(value, function.name), function)
                found |= other_names(each)
    elif isinstance(module := getattr(value, "__module__", None), str) and callable(value):
        for function in async_functions(module) if module.startswith("trionet") else ():
            if function.name == getattr(value, "__name__", ""):
                found[function.name] = (value, function)
    return found


def other_names(kind: type) -> dict[str, tuple[Any, ast.AsyncFunctionDef]]:
    """The methods of a class that are other names of methods of another class."""
    found = {}
    for name, method in vars(kind).items():
        inner = inspect.unwrap(method) if inspect.iscoroutinefunction(method) else method
        if inner is not method:
            home, _, call = inner.__qualname__.rpartition(".")
            [written] = [
                each for each in async_functions(inner.__module__, home) if each.name == call
            ]
            found[name] = (method, written)
    return found


def written_parameters(function: ast.AsyncFunctionDef) -> list[str]:
    every = function.args
    names = [*every.posonlyargs, *every.args, every.vararg, *every.kwonlyargs, every.kwarg]
    return [each.arg for each in names if each is not None]


def is_of_python(function: object) -> bool:
    """Whether it makes coroutines, or is a generator with @asynccontextmanager around it."""
    inner = inspect.unwrap(function) if callable(function) else function
    is_async = inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner)
    return isinstance(inner, types.FunctionType) and is_async


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_public_async_functions_are_pythons_own_with_signature_and_docstring(
    package: str, name: str
) -> None:
    for label, (function, written) in public_async_functions(
        getattr(import_module(package), name)
    ).items():
        assert is_of_python(function), label
        assert written_parameters(written) == list(inspect.signature(function).parameters), label
        assert inspect.getdoc(function), label


def test_the_async_functions_are_found() -> None:
    found = {
        (name, method)
        for package, name in NAMES
        for method in public_async_functions(getattr(import_module(package), name))
    }

    assert {
        ("Admin", "create_topics"),
        ("Broker", "stop"),
        ("Consumer", "__anext__"),
        ("Consumer", "commit"),
        ("NetworkClient", "poll"),
        ("Producer", "enqueue"),
        ("Producer", "send"),
        ("SocketServer", "run"),
        ("open_producer", "open_producer"),
        ("serve", "serve"),
    } <= found


# What a user sees who makes a mistake with one.


OPEN: dict[type, Callable[[str], AbstractAsyncContextManager[Any]]] = {
    Admin: open_admin,
    Consumer: partial(open_consumer, auto_offset_reset="earliest", max_poll_records=1),
    NetworkClient: open_network_client,
    Producer: open_producer,
}


@asynccontextmanager
async def opened(kind: type) -> AsyncIterator[Any]:
    """One of them, with a broker that has some records in the topic ``t``."""
    async with open_broker() as broker:
        async with open_producer(broker.bootstrap_servers) as producer:
            await producer.send_batch("t", [b"v"] * 5)
        async with OPEN[kind](broker.bootstrap_servers) as client, trio.open_nursery() as nursery:
            if kind is Consumer:
                client.assign([TopicPartition("t", 0)])
            elif kind is NetworkClient:
                nursery.start_soon(client.run)
            yield client
            nursery.cancel_scope.cancel()


def called(function: Callable[..., Coroutine[Any, Any, Any]]) -> Coroutine[Any, Any, Any]:
    """Call it with anything: nothing of it runs before it is awaited."""
    needed = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
    ]
    by_name = {each.name: None for each in needed if each.kind is each.KEYWORD_ONLY}
    by_place = [None for each in needed if each.kind is each.POSITIONAL_OR_KEYWORD]
    return function(*by_place, **by_name)


def forget(function: Callable[..., Coroutine[Any, Any, Any]]) -> None:
    called(function)  # type: ignore[unused-coroutine]  # that is the mistake
    gc.collect(0)  # the coroutine is young


def coroutine_functions_of(kind: type) -> list[str]:
    """The names of its async functions, without those that return a context manager."""
    found = public_async_functions(kind)
    return [
        name
        for name, (function, _) in found.items()
        if not inspect.isasyncgenfunction(inspect.unwrap(function))
    ]


@pytest.mark.parametrize("kind", OPEN)
async def test_a_forgotten_await_warns(kind: type) -> None:
    async with opened(kind) as client:
        for name in coroutine_functions_of(kind):
            with pytest.warns(RuntimeWarning, match=rf"{name}' was never awaited"):
                forget(getattr(client, name))


@pytest.mark.parametrize("kind", OPEN)
async def test_a_coroutine_in_place_of_an_async_function_is_explained_by_trio(kind: type) -> None:
    async with opened(kind) as client, trio.open_nursery() as nursery:
        for name in coroutine_functions_of(kind):
            with pytest.raises(TypeError, match="expecting an async function, but instead it got"):
                nursery.start_soon(called(getattr(client, name)))  # type: ignore[arg-type]


AWAITED_TWICE: dict[type, Callable[[Any], list[Coroutine[Any, Any, Any]]]] = {
    Admin: lambda admin: [admin.list_topics(), admin.describe_cluster()],
    Consumer: lambda consumer: [
        consumer.partitions_of("t"),
        consumer.end_offsets([]),
        anext(consumer),
        anext(consumer.batches()),
        consumer.next_batch(),
    ],
    NetworkClient: lambda client: [client.until_updated()],
    Producer: lambda producer: [
        producer.send("t", b"v"),
        producer.send_batch("t", [b"v"]),
        producer.enqueue("t", b"v"),
        producer.enqueue_batch("t", [b"v"]),
        producer.key_partitions("t"),
        producer.flush(),
    ],
}


@pytest.mark.parametrize("kind", OPEN)
async def test_a_coroutine_is_awaited_once(kind: type) -> None:
    async with opened(kind) as client:
        for coroutine in AWAITED_TWICE[kind](client):
            await coroutine
            with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
                await coroutine
