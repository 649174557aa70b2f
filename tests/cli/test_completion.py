"""Completion in shells: what the parsers have is what is offered."""

from __future__ import annotations

import argparse
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import trio

from support.command_runs import Run
from trionet import TopicPartition, open_consumer
from trionet.cli.completion import SHELLS, Option, Place, Value, places
from trionet.cli.completion._names import connection
from trionet.cli.main import COMMANDS, whole_parser
from trionet.dashboard.views import initial_views
from trionet.testing import broker


@pytest.fixture(scope="module")
def all_places() -> dict[tuple[str, ...], Place]:
    return {place.words: place for place in places(whole_parser())}


def test_every_command_is_a_place(all_places: dict[tuple[str, ...], Place]) -> None:
    assert list(COMMANDS) == [name for name, _ in all_places[()].commands]
    assert ("topics", "list") in all_places
    assert ("configs", "quotas", "alter") in all_places
    assert [] == [words for words, place in all_places.items() if not place.options]


def test_a_place_is_read_from_a_parser() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-f", "--form", choices=["a", "b"], help="how (default: a); or not")
    parser.add_argument("--config", metavar="FILE", help="a file, 100%% plain")
    parser.add_argument("--on", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("input", metavar="INPUT")
    parser.add_argument("-t", metavar="TOPIC[:N,...]")
    parser.add_argument("--group")
    parser.add_argument("rest", nargs="*")

    [place] = places(parser)

    assert (
        Option(("-f", "--form"), "how", Value(("a", "b"), is_file=False)),
        Option(("--config",), "a file, 100% plain", Value((), is_file=True)),
        Option(("--on",), "", None),
        Option(("-t",), "", Value((), is_file=False, names="topics")),
        Option(("--group",), "", Value((), is_file=False, names="groups")),
    ) == place.options
    assert Value((), is_file=True) == place.value


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_the_script(
    shell: str, run: Run, all_places: dict[tuple[str, ...], Place]
) -> None:
    done = run("completion", shell)

    assert (0, "") == (done.status, done.err)
    assert SHELLS[shell](list(all_places.values())) == done.out


def test_what_may_be_typed_is_known_without_what_does_it() -> None:
    """A shell that starts runs it, and so does whoever asks for help."""
    program = (
        "from trionet.cli.main import whole_parser\n"
        "import sys\n"
        "whole_parser()\n"
        "print(*('.'.join(name.split('.')[:2]) for name in sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    loaded = set(done.stdout.decode().split())
    assert "trionet.cli" in loaded
    unwanted = {"trio", "attr", "rich", "fastcrc", "cramjam"}
    unwanted |= {f"trionet.{name}" for name in ("broker", "client", "dashboard", "net", "spark")}
    assert set() == loaded & unwanted


CASES = [
    ("", list(COMMANDS)),
    ("to", ["topics"]),
    ("groups de", ["describe", "delete", "delete-offsets"]),
    ("configs quotas ", ["describe", "alter"]),
    ("topics list --form", ["--format"]),
    ("topics list --format ", ["text", "json", "csv"]),
    ("topics list --format j", ["json"]),
    ("topics list --format=", ["text", "json", "csv"]),
    ("topics list --format=j", ["json"]),
    ("topics list -b a:1 --int", ["--internal"]),
    ("configs describe t", ["topic"]),
    ("topics list -F cl", ["client.properties"]),
    ("completion z", ["zsh"]),
]
EXPECTED = {line: set(words) for line, words in CASES}


#: Finds the command, which completion calls for names.
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with each shell's file, and a file of settings."""
    found = list(places(whole_parser()))
    path = tmp_path_factory.mktemp("completion")
    for name, script in SHELLS.items():
        (path / f"trionet.{name}").write_text(script(found))
    (path / "client.properties").write_text("")
    return path


def answers(
    command: list[str], folder: Path, lines: Iterable[str] = tuple(EXPECTED)
) -> dict[str, set[str]]:
    """What a shell offers for each line; it is given them, and prints a line of dashes after."""
    done = subprocess.run(
        [*command, *(f"trionet {line}" for line in lines)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "HOME": str(folder), "PATH": PATH},
    )
    assert "" == done.stderr
    found = done.stdout.split("---\n")[:-1]
    return {
        line: set(filter(None, words.split("\n"))) for line, words in zip(lines, found, strict=True)
    }


BASH = """source trionet.bash
    for line; do
        IFS=' ' read -ra COMP_WORDS <<< "${line//=/ = }"  # as bash splits them
        [[ $line == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line}
        _trionet 2>/dev/null
        printf '%s\n' "${COMPREPLY[@]}" ---
    done"""


@pytest.mark.slow
def test_bash_offers_it(folder: Path) -> None:
    assert EXPECTED == answers(["bash", "--norc", "-c", BASH, "-"], folder)


# Names that are looked up.

#: What a shell must not take for anything but a name.
HOSTILE = "$(touch hacked)"


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with broker(topics={"orders": 1, "orders-old": 1, "prices": 1}) as running:
        servers = running.bootstrap_servers
        for group in ("baristas", HOSTILE, "two\nlines"):
            trio.run(commit, servers, group)
        yield servers


async def commit(servers: str, group: str) -> None:
    async with open_consumer(servers, group_id=group) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        await consumer.commit({TopicPartition("orders", 0): 0})


def test_topics_and_groups_are_those_of_the_cluster_of_the_command_line(
    cluster: str, run: Run
) -> None:
    topics = run("__complete", "topics", f"trionet consume -b {cluster} or")
    groups = run("__complete", "groups", f"trionet consume -b {cluster} -G 'ba")

    assert (0, "orders\norders-old\nprices\n", "") == topics
    assert (0, f"{HOSTILE}\nbaristas\n", "") == groups


def test_views_are_those_of_the_dashboard(run: Run) -> None:
    assert {*initial_views()} == set(run("__complete", "views", "").out.split())


@pytest.mark.parametrize(
    "line", ["trionet consume -b 127.0.0.1:1 ", "trionet consume -X nonsense=1 ", "consume -F /no "]
)
def test_what_cannot_be_looked_up_prints_nothing(line: str, run: Run) -> None:
    done = run("__complete", "topics", line)

    assert ("", "") == (done.out, done.err)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("trionet consume -b a:1 or", "a:1"),
        ("trionet consume --brokers=a:1 -G 'my gr", "a:1"),
        ('trionet consume --brokers "a:1" -G "my gr', "a:1"),
        ("trionet consume -b a:1 -X", "a:1"),
        ("trionet consume -b a:1 --log-level nonsense", "a:1"),
        ("trionet consume -b", None),
        ("trionet consume it's \"odd", None),
    ],
)
def test_the_cluster_is_read_from_a_line_that_is_not_complete(
    line: str, expected: str | None
) -> None:
    assert expected == connection(line).brokers


@pytest.mark.slow
def test_bash_offers_names_and_expands_none(folder: Path, cluster: str) -> None:
    lines = {
        f"topics describe -b {cluster} orders": {"orders", "orders-old"},
        f"topics create -b {cluster} orders": set(),
        f"consume prices -b {cluster} -G b": {"baristas"},
        f"groups describe -b {cluster} $": {r"\$\(touch\ hacked\)"},
        "dashboard --view co": {"connections"},
        "dashboard --view=co": {"connections"},
        f"consume prices --brokers={cluster} --group=b": {"baristas"},
        f"consume -b {cluster} -X group.id=": set(),
        "topics describe -b 127.0.0.1:1 o": set(),
    }

    found = answers(["bash", "--norc", "-c", BASH, "-"], folder, lines)

    assert lines == found
    assert not (folder / "hacked").exists()


FISH = """source trionet.fish
    for line in $argv
        complete -C "$line" | string replace -r '\t.*' ''
        echo ---
    end"""


@pytest.mark.slow
def test_fish_offers_it(folder: Path, cluster: str) -> None:
    if shutil.which("fish") is None:
        pytest.skip("there is no fish")
    lines = {
        f"topics describe -b {cluster} orders": {"orders", "orders-old"},
        f"groups describe -b {cluster} b": {"baristas"},
        "dashboard --view co": {"connections"},
    }
    expected = EXPECTED | lines

    assert expected == answers(["fish", "--no-config", "-c", FISH], folder, expected)
    assert not (folder / "hacked").exists()


@pytest.mark.slow
def test_zsh_completes_what_is_typed(folder: Path, cluster: str) -> None:
    """Its completion needs a terminal, where a tab completes what is the only one."""
    if shutil.which("zsh") is None:
        pytest.skip("there is no zsh")
    setup = "autoload -Uz compinit; compinit -u; source ./trionet.zsh; print REA''DY\n"
    lines = {
        "trionet to\t": "trionet topics ",
        "trionet topics list --int\t": "trionet topics list --internal ",
        "trionet topics list --format j\t": "trionet topics list --format json ",
        "trionet topics list --format=j\t": "trionet topics list --format=json ",
        "trionet topics list -F cl\t": "trionet topics list -F client.properties ",
        "trionet groups re\t": "remove-members",
        f"trionet topics describe -b {cluster} pri\t": "prices ",
        f"trionet groups describe -b {cluster} bar\t": "baristas ",
        "trionet dashboard --view conn\t": "connections ",
    }
    terminal, inside = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "PATH": PATH, "TERM": "dumb"},
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    try:
        shown_after(terminal, setup, "READY\r\n")
        for line, expected in lines.items():
            shown_after(terminal, line, expected)
            os.write(terminal, b"\x15")  # takes the line back
    finally:
        shell.kill()
        shell.wait()
        os.close(inside)
        os.close(terminal)


def shown_after(terminal: int, typed: str, expected: str) -> None:
    """Wait until a terminal shows something; the test's own limit ends what never comes."""
    os.write(terminal, typed.encode())
    shown = ""
    while expected not in shown:
        shown += os.read(terminal, 4096).decode()
