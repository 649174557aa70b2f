"""The search itself: what it finds it keeps and reports, with a fuzzer to guide it and without."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzz import blind, engine
from fuzz.corpus import keep, seeds_of, smallest
from fuzz.guided import ROOT, Search, Searched, StatusLine, table
from fuzz.target import NAMES, Target, share

SECONDS = 2
WORD = b"magic"

# Of a file in the folder of a target, in a package of its own.
BROKEN = f"""\
WATCHED = ()
WORDS = ({WORD!r},)
BYTES_MAX = 64

def run(data: bytes) -> None:
    if {WORD!r} in data:
        raise IndexError("this is what was searched for")
"""
ENDS = """\
WATCHED = ()
WORDS = (b"x",)
BYTES_MAX = 64

def run(data: bytes) -> None:
    raise SystemExit("no target ends like this")
"""


def finds_magic(data: bytes) -> None:
    if WORD in data:
        raise IndexError


def has_three_ways(data: bytes) -> None:
    if data.startswith(b"a"):
        data += b"b"
    if data.startswith(b"c"):
        data += b"d"


MAGIC = Target("magic", finds_magic, (WORD,), 64)
WAYS = Target("ways", has_three_ways, (b"a",), 64)


@pytest.fixture
def target(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a target that is made of a text."""
    folder = tmp_path / "elsewhere/fuzz/targets"
    folder.mkdir(parents=True)
    (folder / "told.py").write_text(request.param)
    (tmp_path / "seeds/told").mkdir(parents=True)
    (tmp_path / "seeds/told/one.bin").write_bytes(b"one")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "elsewhere"))
    return "told"


def search(name: str, folder: Path, atheris: Path | None) -> Searched:
    line = StatusLine(io.StringIO())
    return Search(name, SECONDS, folder, atheris, folder / "seeds").run(line)


def test_a_blind_search_finds_what_a_word_leads_to_and_keeps_it(tmp_path: Path) -> None:
    find = blind.search(MAGIC, [b"one", b"two"], 60, 5, tmp_path)

    assert find is not None
    assert WORD in find.read_bytes()
    assert [find] == list(tmp_path.iterdir())


def test_a_blind_search_begins_with_what_it_is_given(tmp_path: Path) -> None:
    find = blind.search(MAGIC, [b"one", WORD], 60, 5, tmp_path)

    assert find is not None
    assert WORD == find.read_bytes()


def test_an_input_that_takes_too_long_is_a_find(tmp_path: Path) -> None:
    def hang(_: bytes) -> None:
        while True:
            time.monotonic()

    find = blind.search(Target("hang", hang, (), 64), [b"x"], 60, 0.05, tmp_path)

    assert find is not None
    assert b"x" == find.read_bytes()


def test_a_blind_search_without_a_find_ends_in_time(tmp_path: Path) -> None:
    fed: set[bytes] = set()

    assert None is blind.search(Target("any", fed.add, (b"y",), 8), [], 0.1, 5, tmp_path)
    assert len(fed) > 1
    assert max(map(len, fed)) <= 8


@pytest.mark.slow
@pytest.mark.parametrize("target", [BROKEN], indirect=True)
def test_a_find_is_reported_with_its_input_and_its_trace(target: str, tmp_path: Path) -> None:
    found = search(target, tmp_path, None)

    assert not found.is_clean
    assert found.find is not None
    assert WORD in found.find.read_bytes()
    assert "IndexError: this is what was searched for" in found.trace
    assert "FOUND SOMETHING" in table([found])


@pytest.mark.slow
@pytest.mark.parametrize("target", [ENDS], indirect=True)
def test_a_search_that_ends_by_itself_is_not_clean(target: str, tmp_path: Path) -> None:
    found = search(target, tmp_path, None)

    assert not found.is_clean
    assert None is found.find
    assert "the search ended with status 1" in found.trace


@pytest.mark.slow
@pytest.mark.parametrize("target", [BROKEN], indirect=True)
def test_coverage_guides_where_atheris_is(target: str, tmp_path: Path) -> None:
    if not engine.FOLDER.exists():
        pytest.skip("atheris is fetched by the first `python3 tests fuzz --seconds N`")
    found = search(target, tmp_path, engine.FOLDER)

    assert found.find is not None
    assert WORD in found.find.read_bytes()
    assert "IndexError: this is what was searched for" in found.trace


def test_where_atheris_does_not_install_a_line_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "atheris"

    assert None is engine.fetched(f"{tmp_path}/no-such-wheel.whl", folder)

    assert not folder.exists()
    assert "no atheris here, so nothing guides the search" in capsys.readouterr().err


def test_of_inputs_that_reach_the_same_the_shortest_is_kept() -> None:
    kept = smallest(WAYS, [b"", b"a", b"aa", b"aaaa", b"c", b"cc", b"x"])

    assert {b"a", b"c"} == {*kept}


def test_an_input_with_a_name_stays_and_makes_others_needless(tmp_path: Path) -> None:
    (tmp_path / "found-in-spring.bin").write_bytes(b"aaaa")
    (tmp_path / "0123456789ab.bin").write_bytes(b"xxx")

    assert 1 == keep(WAYS, [b"a", b"c", b"cc"], tmp_path)

    assert {b"aaaa", b"c"} == {path.read_bytes() for path in tmp_path.iterdir()}


def test_shares_are_all_of_the_time() -> None:
    shares = {name: share(name, NAMES) for name in NAMES}

    assert 1 == pytest.approx(sum(shares.values()))
    assert shares["tls_records"] == max(shares.values()) > shares["plain"] > 0


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(str(ROOT / folder) for folder in ("tests", ".ci"))
    return subprocess.run(
        [sys.executable, "-m", "fuzz", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.mark.slow
def test_the_job_searches_where_its_options_say() -> None:
    done = fuzz("--seconds", "1", "--blind", "--target", "plain")

    assert (0, "") == (done.returncode, done.stderr)
    assert "1 targets, changing inputs at random" in done.stdout
    assert "nothing found" in done.stdout


@pytest.mark.slow
def test_one_input_can_be_fed_once_more() -> None:
    seed = seeds_of("jaas")[0]

    done = fuzz("--target", "jaas", "--replay", str(seed))

    assert "jaas: nothing is wrong with this input\n" == done.stdout


@pytest.mark.slow
def test_help_names_every_target() -> None:
    done = fuzz("--help")

    assert [] == [name for name in NAMES if f"\n  {name} " not in done.stdout]


@pytest.mark.slow
def test_without_options_of_its_own_the_job_is_pytest() -> None:
    done = fuzz("--collect-only", "-q", "tests/fuzz/test_resets.py")

    assert "test_a_thousand_peers_that_reset_during_a_long_poll" in done.stdout
    assert "test_peers_that_reset_during_a_long_poll_are_gone_at_once" not in done.stdout
