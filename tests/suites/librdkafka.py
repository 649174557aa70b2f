"""librdkafka's tests of transactions and compacted topics, in C and C++, partly beside Java.

They are built once, in the folder of the source. Their topics have three replicas, so there are
three nodes. Other packages here bring librdkafka without its tests, so the version stands here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from suites.report import Outcome, Report
from suites.source import call, clone
from suites.suite import KAFKA_VERSION
from support.cache import Unavailable, cache_folder, made_once, require_program
from support.kafka_jars import java, kafka_jars
from support.kafka_tools import TOPICS
from trionet.testing import broker

NAME = "librdkafka"
VERSION = "v2.15.0"
_REPOSITORY = "https://github.com/confluentinc/librdkafka.git"
#: What the tests read statistics with is headers alone, and pip has them in this archive.
_RAPIDJSON = ("python-rapidjson", "1.25")
_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "num.partitions": "4"}
_SECONDS_MAX = 900
#: Those with a transactional producer or a compacted topic, and a broker; others have a broker of
#: librdkafka's own.
_TESTS = (
    "0011",  # records without a key in a compacted topic
    "0061",  # the lag of a consumer
    "0077",  # tombstones, and tables that are compacted
    "0098",  # transactions that end in every way, by the Java producer, too
    "0103",  # transactions
    "0129",  # aborted records
    "0137",  # batches of a consumer
)
_LEFT_OUT = (Outcome("0177_share_consumer_transactions", "left out", "share groups (KIP-932)"),)
_PASSED = re.compile(r"\[(\w+) +/ *[\d.]+s\] .*?\[ (\w+):\d+(: .*)?: PASS \([\d.]+s\) \]")
_SKIPPED = re.compile(r"\[(\w+) +/ *[\d.]+s\] .*?\[ (\w+):\d+(: .*)?: SKIP: (.*) \]")
_ENDED = re.compile(r"=+ Test (\w+) (PASSED|SKIPPED) =+")
_FAILED = re.compile(r'### Test "([\w<>]+)(?: \((\w+):\d+(: .*)?\))?" failed at [^\n]*\n([^\n]*)')
_COLORS = re.compile(r"\x1b\[\d+m")


def run_librdkafka(checkout: Path | None) -> Report:
    """Run them, with their output passed through.

    Args:
        checkout: a folder with the source, if it is not to be fetched; it is built there.

    Raises:
        Unavailable: the source, a compiler, or Kafka's jars cannot be had.
    """
    fetch = partial(clone, _REPOSITORY, VERSION)
    source = checkout or made_once(cache_folder() / "suites" / f"{NAME}-{VERSION}", fetch)
    require_program("javac", f"compiles the Java producer of the tests of {NAME}")
    _build(source)
    folder = source / "tests"
    with (
        tempfile.TemporaryDirectory(prefix="trionet-suite-") as scratch,
        broker(_SETTINGS, brokers=3) as running,
    ):
        _write_kafka(Path(scratch))
        conf = Path(scratch) / "test.conf"
        conf.write_text(f"bootstrap.servers={running.bootstrap_servers}\n")
        process = subprocess.Popen(
            ["./test-runner"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={
                **os.environ,
                "BROKERS": running.bootstrap_servers,
                "KAFKA_PATH": scratch,
                "LD_LIBRARY_PATH": "../src:../src-cpp",
                "RDKAFKA_TEST_CONF": str(conf),
                "TEST_KAFKA_VERSION": KAFKA_VERSION,
                "TESTS": ",".join(_TESTS),
            },
        )
        said = _output(process)
    for left in folder.glob("stats_*.json"):
        left.unlink()
    return Report(NAME, [*outcomes(said, _TESTS), *_LEFT_OUT])


def _output(process: subprocess.Popen[str]) -> str:
    """Its whole output, also printed; it is killed if it takes too long."""
    with process:
        try:
            said, _ = process.communicate(timeout=_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
    print(said, flush=True)
    return said


def _build(source: Path) -> None:
    if (source / "tests" / "test-runner").exists():
        return
    make = require_program("make", f"builds the tests of {NAME}")
    name, version = _RAPIDJSON
    headers = made_once(cache_folder() / "suites" / f"{name}-{version}", _fetch_rapidjson)
    jobs = f"-j{os.cpu_count() or 1}"
    for command in (
        ["./configure", f"--CPPFLAGS=-I{headers}"],
        [make, jobs, "libs"],
        [make, jobs, "-C", "tests", "test-runner"],
    ):
        done = subprocess.run(command, check=False, cwd=source, capture_output=True, text=True)
        if done.returncode:
            said = (done.stdout + done.stderr).strip()[-300:]
            raise Unavailable(f"the tests of {NAME} could not be built: {said}")


def _fetch_rapidjson(folder: Path) -> None:
    name, version = _RAPIDJSON
    wanted = f"{name}=={version}"
    with tempfile.TemporaryDirectory(prefix="trionet-suite-") as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", name]
        call([*pip, "--dest", scratch, wanted], f"pip could not fetch the source of {wanted}")
        [archive] = Path(scratch).glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(scratch, filter="data")
        [headers] = Path(scratch).glob("*/rapidjson/include")
        shutil.copytree(headers, folder)


def _write_kafka(folder: Path) -> None:
    """Create what the tests use of a Kafka installation: jars, and scripts that run a class."""
    (folder / "bin").mkdir()
    (folder / "libs").symlink_to(kafka_jars()[0].parent)
    for name, main in (("kafka-run-class.sh", ""), ("kafka-topics.sh", f"{TOPICS} ")):
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {java()} -cp "$CLASSPATH:{folder}/libs/*" {main}"$@"\n')
        script.chmod(0o755)


def outcomes(said: str, wanted: Sequence[str]) -> list[Outcome]:
    """What the test runner reports; a test with parts counts by its parts.

    Args:
        said: its output, with colors.
        wanted: the beginnings of the tests' names; one without a result has failed.
    """
    plain = _COLORS.sub("", said)
    found: dict[str, Outcome] = {}
    for test, part, more in _PASSED.findall(plain):
        name = f"{test}/{part}{more}"
        found[name] = Outcome(name, "passed", "")
    for test, part, more, why in _SKIPPED.findall(plain):
        name = f"{test}/{part}{more}"
        found[name] = Outcome(name, "skipped", why)
    for test, part, more, why in _FAILED.findall(plain):
        name = f"{test}/{part}{more}" if part else test
        found[name] = Outcome(name, "failed", why)
    ended = _ENDED.findall(plain)
    for test, word in ended:
        if not any(name.startswith(f"{test}/") for name in found):
            found[test] = Outcome(test, word.lower(), "" if word == "PASSED" else "see above")
    for prefix in wanted:
        if not any(test.startswith(prefix) for test in (*found, *(test for test, _ in ended))):
            found[prefix] = Outcome(prefix, "failed", "it did not end; see above")
    return list(found.values())
