"""``trionet dashboard``: watch a broker or a cluster in the terminal."""

from __future__ import annotations

import re
import shutil
import signal
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from typing import TYPE_CHECKING, Final

from trionet._util.files._regular_file import read_regular_file
from trionet.errors import ConfigError

from .arguments._parser import add_all, argument, flag, group, option
from .clients._connection import (
    CLIENT_ID,
    DEFAULT,
    DEFAULT_SERVERS,
    SERVERS,
    add_connection_arguments,
    first_line_of,
    logging_to_stderr,
    release_log,
    resolve_settings,
)
from .terminal._output import print_message, stdout

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from trionet.dashboard._once import OnceOptions
    from trionet.dashboard.sources._source import Source

THEMES: Final = ("auto", "dark", "light")
DEFAULT_VIEW: Final = "overview"
DEFAULT_REFRESH_SECONDS: Final = 1.0
FORMATS: Final = ("text", "json", "csv", "svg", "html")
_SIZE: Final = re.compile(r"([1-9]\d{1,2})x([1-9]\d{1,2})")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Watch a broker or a cluster: requests, connections, topics, groups, and the internals of "
        "a trionet broker. Press ? for the keys. If standard input or output is not a terminal, "
        "print one view and exit."
    )
    add_all(
        parser,
        argument(
            "server",
            "HOST[:PORT]",
            f"bootstrap broker, as with --brokers (default: {DEFAULT_SERVERS})",
            nargs="?",
        ),
        add_connection_arguments,
        option(
            "--metrics URL",
            "the metrics listener of a trionet broker (metrics.listener), for its internals: "
            "http://HOST:PORT or https://HOST:PORT (not needed for a broker that you run on this "
            "machine)",
        ),
        option(
            "--metrics-token-file FILE",
            "file with the listener's token (metrics.listener.token), needed to close connections",
        ),
        option(
            "--metrics-ca-file FILE",
            "PEM certificates to trust for the listener (default: those of the system)",
        ),
        option(
            "--pipeline-topic TOPIC", "results topic of `trionet pipeline run` (default: detected)"
        ),
        group(
            "display",
            option("--view VIEW", f"the initial view (default: {DEFAULT_VIEW})"),
            option(
                "--filter WORDS",
                "with --once: only rows that contain all of these words",
            ),
            option(
                "--refresh SECONDS",
                f"refresh interval, 0.2 to 60 (default: {DEFAULT_REFRESH_SECONDS:g})",
                type=float,
            ),
            flag("--ascii", "no Unicode", default=None),
            flag("--no-color", "no colors, as with NO_COLOR"),
            option(
                "--theme",
                "colors for a dark or a light background (default: that of the terminal)",
                choices=THEMES,
                default="auto",
            ),
            option(
                "--mouse",
                "use the mouse; without, the terminal selects text without Shift (key m)",
                action=BooleanOptionalAction,
                default=True,
            ),
            flag("--once", "print the view once and exit"),
            option(
                "--interval SECONDS",
                "print a line of figures at this interval instead of a view",
                type=float,
            ),
            option("--count N", "exit after N lines of figures", type=int),
            option(
                "--format",
                "format of --once (any of these) or --interval (text, json, csv) (default: text)",
                choices=FORMATS,
            ),
            option(
                "--size COLUMNSxLINES",
                "size of the output of --once (default: that of the terminal, or 120x40)",
            ),
        ),
    )
    parser.set_defaults(prog=parser.prog)


def run(arguments: Namespace) -> int:
    """Run the command and return the exit status: 0, 2 on invalid usage, 128 + N after signal N."""
    import trio

    from trionet.dashboard.terminal._ansi import is_interactive

    _check(arguments)
    is_once = arguments.once or arguments.format is not None or not is_interactive()
    _check_form(arguments, is_once=is_once)
    with logging_to_stderr(arguments, holds=is_once and arguments.interval is None):
        if arguments.interval is not None:
            return trio.run(_until_interrupted, _roll, arguments)
        if is_once:
            return trio.run(_until_interrupted, _look, arguments)
        return trio.run(_show, arguments)


def _check(arguments: Namespace) -> None:
    from trionet.dashboard.ui._ui import REFRESH_SECONDS
    from trionet.dashboard.views import initial_views

    names = initial_views()
    if arguments.view is not None and arguments.view not in names:
        from trionet._util._text import nearest

        near = nearest(arguments.view, names)
        raise ConfigError(
            f"--view {arguments.view}: unknown view{near}; choose from {', '.join(names)}"
        )
    least, most = REFRESH_SECONDS[0], REFRESH_SECONDS[-1]
    if arguments.refresh is not None and not least <= arguments.refresh <= most:
        raise ConfigError(f"--refresh {arguments.refresh:g}: must be {least:g} to {most:g} seconds")
    if arguments.interval is None:
        if arguments.count is not None:
            raise ConfigError("--count requires --interval SECONDS")
    elif not least <= arguments.interval <= 86_400:
        raise ConfigError(f"--interval {arguments.interval:g}: must be {least:g} to 86,400 seconds")
    elif arguments.once:
        raise ConfigError("--once and --interval cannot be combined")
    elif arguments.format is not None:
        _check_rolling_form(arguments.format)
    if arguments.server is not None and arguments.brokers is not None:
        raise ConfigError(f"{arguments.server} and --brokers {arguments.brokers}: give one of them")
    if arguments.count is not None and arguments.count < 1:
        raise ConfigError(f"--count {arguments.count}: must be at least 1")
    if arguments.size is not None and not _SIZE.fullmatch(arguments.size):
        raise ConfigError(
            f"--size {arguments.size}: must have the form COLUMNSxLINES, such as 120x40"
        )
    for name in ("metrics_token_file", "metrics_ca_file"):
        if arguments.metrics is None and getattr(arguments, name) is not None:
            raise ConfigError(f"--{name.replace('_', '-')} requires --metrics URL")


def _check_form(arguments: Namespace, *, is_once: bool) -> None:
    """Reject options that the screen, a view printed once, or lines of figures would ignore."""
    if arguments.interval is not None:
        form, ignored = "--interval", ["view", "filter", "size", "refresh"]
    elif not is_once:
        form, ignored = "the screen", ["filter", "size"]
    elif arguments.format in {"json", "csv"}:
        form, ignored = f"--format {arguments.format}", ["size", "refresh"]
    else:
        form, ignored = "a view that is printed once", ["refresh"]
    for name in ignored:
        if getattr(arguments, name) is not None:
            raise ConfigError(f"--{name} has no effect on {form}")


def _check_rolling_form(form: str) -> None:
    from trionet.dashboard._once import ROLLING_FORMS  # which a screen does not need

    if form not in ROLLING_FORMS:
        raise ConfigError(f"--format {form}: --interval supports {', '.join(ROLLING_FORMS)}")


def open_source(arguments: Namespace) -> AbstractAsyncContextManager[Source]:
    """Open the data source selected by the arguments."""
    from trionet.dashboard.sources._open_source import open_remote

    if arguments.server is not None:
        arguments.brokers = arguments.server
    resolved = resolve_settings(arguments)
    if resolved[CLIENT_ID].origin == DEFAULT:
        del resolved[CLIENT_ID]  # each of the dashboard's clients has its own
    settings = {each.key: each.value for each in resolved.values()}
    servers = settings.pop(SERVERS)
    return open_remote(
        servers,
        settings,
        metrics_url=arguments.metrics,
        metrics_token=_token(arguments.metrics_token_file),
        metrics_tls=_tls_context(arguments.metrics_ca_file),
        pipeline_topic=arguments.pipeline_topic,
    )


def _tls_context(path: str | None) -> ssl.SSLContext | None:
    if path is None:
        return None
    import ssl

    from trionet.net.tls._key_stores import STORE_BYTES_MAX

    try:
        certificates = read_regular_file(path, STORE_BYTES_MAX).decode("ascii", "replace")
        return ssl.create_default_context(cadata=certificates)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"--metrics-ca-file {path}: {error}") from error


def _token(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return first_line_of(path).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--metrics-token-file {path}: {error}") from error


async def _show(arguments: Namespace) -> int:
    from trionet.dashboard._app import DashboardSettings, run_dashboard

    settings = DashboardSettings(
        view=arguments.view or DEFAULT_VIEW,
        refresh_seconds=arguments.refresh or DEFAULT_REFRESH_SECONDS,
        color=False if arguments.no_color else None,
        ascii=arguments.ascii,
        mouse=arguments.mouse,
        theme=None if arguments.theme == "auto" else arguments.theme,
    )
    async with open_source(arguments) as source:
        return await run_dashboard(source, settings)


async def _until_interrupted(
    command: Callable[[Namespace], Awaitable[int]], arguments: Namespace
) -> int:
    """Run a command until it finishes or Ctrl-C cancels it, without raising an exception group."""
    import trio

    from trionet._util._raising import raise_single_error

    status = 128 + signal.SIGINT
    with raise_single_error(), trio.open_signal_receiver(signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                async for _ in signals:
                    nursery.cancel_scope.cancel(reason="interrupted")

            nursery.start_soon(wait)
            status = await command(arguments)
            nursery.cancel_scope.cancel(reason="the command has finished")
    return status


async def _roll(arguments: Namespace) -> int:
    from trionet.dashboard._once import roll

    def report(alarm: str) -> None:
        print_message(arguments, alarm)
        arguments.last_logged = alarm  # the error at the end may say the same

    async with open_source(arguments) as source:
        form = arguments.format or "text"
        await roll(source, arguments.interval, arguments.count, form, stdout(), report)
    return 0


async def _look(arguments: Namespace) -> int:
    from trionet.dashboard._once import NotATableError, UnreachableError, render_once

    try:
        async with open_source(arguments) as source:
            text = await render_once(source, _once_options(arguments))
    except NotATableError as error:
        raise ConfigError(str(error)) from error
    except UnreachableError:
        release_log(discard=True)  # it says the same
        raise
    out = stdout()
    out.write(text)
    out.flush()
    return 0


def _once_options(arguments: Namespace) -> OnceOptions:
    from trionet.dashboard._once import OnceOptions

    width, height, out = 120, 40, stdout()
    if arguments.size is not None:
        found = _SIZE.fullmatch(arguments.size)
        assert found is not None
        width, height = int(found[1]), int(found[2])
    elif out.isatty():
        width, height = shutil.get_terminal_size((width, height))
    return OnceOptions(
        view=arguments.view or DEFAULT_VIEW,
        form=arguments.format or "text",
        width=width,
        height=height,
        ascii=bool(arguments.ascii) or "utf" not in (getattr(out, "encoding", None) or "").lower(),
        filter=arguments.filter or "",
        theme="dark" if arguments.theme == "auto" else arguments.theme,
        is_terminal=out.isatty(),
    )
