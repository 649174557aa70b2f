"""``python3 tests``: set up what the tests need, then run them, or one of the named longer jobs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / ".ci"))

from compiled_package import obstacle, put_in_front
from environment import ROOT, run_inside

#: Jobs that are programs: what for, and the module below ``tests``.
PROGRAMS = {
    "changed": ("the quick tests nearest to what you have changed, in a minute", "changed"),
    "generate": ("write what is generated again, or only --check it", "protocol.generator"),
    "bench": ("measure; names of benchmarks as arguments", "bench"),
    "faults": ("disturb a server in every way at once, for five minutes", "faults"),
    "conformance": ("which lines of Kafka's network layer have tests", "conformance"),
    "suites": ("other projects' own integration tests; names as arguments", "suites"),
    "compaction": (
        "clean random logs as Kafka does, and kill a broker at each step of its cleaner",
        "compaction",
    ),
    "churn": ("members of a group come, leave and crash, for five minutes", "churn"),
    "bank": ("transactions of real processes, which are killed at random", "bank"),
    "telemetry": ("a pipeline that is killed counts every request once", "telemetry"),
    "ordeal": ("our clients while leaders move and brokers are killed, from seeds", "ordeal"),
    "spark": ("everything in Spark, on the oldest PySpark and on a newer one", "spark"),
    "beside": ("read and write in Spark beside its own Kafka connector", "spark.beside"),
    "reports": ("reports of the pipeline beside a job that is killed", "reports"),
    "spark-kills": ("kill the processes and the broker of jobs in Spark", "spark_kills"),
    "sim": ("simulate a broker, its clients, faults and crashes, from a seed", "sim"),
    "log-lives": ("a log that is deleted, stopped and killed, beside a model", "log_lives"),
    "log-faults": ("a log, hostile batches, and exceptions at every line", "log_faults"),
    "cancellations": ("cancel each await point of our clients in turn", "cancellations"),
    "network-mutants": ("change the network layer, and see that a test fails", "network_mutants"),
    "mutations": ("decode a million frames that something has changed", "protocol.mutations"),
    "responses": ("change any field of the responses that our clients read", "responses"),
    "mutated-rows": ("mutated records and scrapes for dashboard and pipeline", "mutated_rows"),
    "jafka": ("have a Jafka broker handle a million frames that something has changed", "jafka"),
    "hostile": ("the worst requests of every API: how long others wait, and memory", "hostile"),
    "loss": ("take parts of a broker's folder away, and see what it says", "damage.loss"),
    "flips": ("flip bits in a broker's folder, and see what it says", "damage.flips"),
    "escapes": ("every command, view and log beside hostile names, on a terminal", "escapes"),
    "streams": ("every command beside broken standard streams and signals", "streams"),
    "fuzz": ("search for a long time for input that breaks something", "fuzz"),
}
#: Jobs that are a selection of tests: what for, and pytest's arguments.
SELECTIONS = {
    "interop": ("only the tests with foreign clients and servers", ["-m", "interop"]),
    "crash": ("kill a broker again and again", ["-m", "crash", "--timeout=0"]),
    "types": ("a user's program through mypy, also beside trio-typing", ["-m", "types"]),
    "terminal": ("the dashboard in tmux: every view, sizes, signals", ["-m", "terminal"]),
    "soak": ("go on for minutes, to see that nothing grows", ["-m", "soak", "--timeout=0"]),
}
#: The job that tests the compiled package: what for, and the tests that run what is compiled. mypyc
#: changes how a line runs, not what a program does: each line and branch of a compiled module that
#: some test reaches is reached by one of these. What goes through the same lines once more (whole
#: brokers and clients, TLS, Spark), or through none (messages, most handlers, groups, settings,
#: security, the admin client), is the same in both and stays with the job without a name;
#: `python3 tests compiled tests` runs all of it.
COMPILED = "test the package as pip installs it where there is a C compiler"
COMPILED_TESTS = [
    "tests/test_compile_hook.py",
    "tests/test_compiled.py",
    "tests/test_coroutine_functions.py",
    "tests/_util",
    "tests/broker/api",
    "tests/broker/handlers/test_fetch*.py",
    "tests/broker/handlers/test_produce*.py",
    "tests/broker/log/compaction",
    "tests/broker/log/files",
    "tests/broker/log/folder",
    "tests/broker/log/recovery",
    "tests/broker/log/segments",
    "tests/broker/log/state",
    "tests/broker/log/validation",
    "tests/broker/log/test_[!kp]*.py",
    "tests/broker/model/test_broker_state.py",
    "tests/broker/model/test_cluster_leaders.py",
    "tests/broker/model/test_cluster_nodes.py",
    "tests/broker/model/test_fetch_sessions.py",
    "tests/broker/model/test_purgatory.py",
    "tests/broker/model/test_request_log_topic.py",
    "tests/broker/run/test_full_disk.py",
    "tests/broker/run/test_upkeep.py",
    "tests/broker/storage",
    "tests/broker/telemetry/test_request_log_writer.py",
    "tests/builds",
    "tests/client/consumer/fetch",
    "tests/client/consumer/records",
    "tests/client/consumer/state",
    "tests/client/consumer/test_consumer.py",
    "tests/client/consumer/test_group_consumer.py",
    "tests/client/network",
    "tests/client/producer/batching",
    "tests/client/producer/delivery",
    "tests/client/producer/sending",
    "tests/client/producer/test_*.py",
    "tests/client/producer/transactions/test_transaction_manager.py",
    "tests/client/producer/transactions/test_transaction_state.py",
    "tests/client/producer/transactions/test_transactions.py",
    "tests/client/test_client_metrics.py",
    "tests/crash",
    "tests/demo",
    "tests/faults",
    "tests/interop",
    "tests/jafka/test_*.py",
    "tests/metrics/test_rates.py",
    "tests/metrics/test_request*.py",
    "tests/net/test_[!kt]*.py",
    "tests/net/test_t[!l]*.py",
    "tests/protocol/records/columnar/test_numpy*.py",
    "tests/protocol/records/compression",
    "tests/protocol/records/test_*.py",
    "tests/protocol/test_codec.py",
    "tests/protocol/test_header.py",
    "tests/protocol/test_request_log.py",
    "tests/server",
    "tests/spark/source/test_arrow_decoder.py",
    "tests/testing/faults/test_faults.py",
]


def compiled_tests() -> list[str]:
    """The paths that ``COMPILED_TESTS`` stands for."""
    found = {path for pattern in COMPILED_TESTS for path in ROOT.glob(pattern)}
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


HELP = """\
python3 tests changed             while you work: the quick tests nearest to your changes
python3 tests [ARGUMENT]...       every test that belongs to a change; arguments are pytest's
python3 tests JOB [ARGUMENT]...   one of the longer jobs:

{jobs}

Everything runs in .venv, which the first start makes. Examples:

  python3 tests -k groups         the tests with "groups" in their name or path
  python3 tests tests/net -x      one folder, up to the first failure
  python3 tests -m 'not slow'     only what takes less than a quarter of a second
"""


def main(arguments: list[str]) -> None:
    """Choose what to run; does not return from it."""
    first = arguments[0] if arguments else ""
    if first in {"-h", "--help"}:
        jobs = [(job, text) for table in (PROGRAMS, SELECTIONS) for job, (text, _) in table.items()]
        jobs.append(("compiled", COMPILED))
        print(HELP.format(jobs="\n".join(f"  {job:<17}{text}" for job, text in jobs)), end="")
        return
    os.chdir(ROOT)  # paths in arguments and in pyproject.toml are the repository's
    if first in PROGRAMS:
        # As for pytest: `support` is imported from one of them, `environment` from the other.
        path = [str(ROOT / "tests"), str(ROOT / ".ci")]
        path += filter(None, [os.environ.get("PYTHONPATH")])
        os.environ["PYTHONPATH"] = os.pathsep.join(path)
        also = compile_to_measure if first in {"bench", "faults", "telemetry"} else None
        job = ["-m", "support.job", PROGRAMS[first][1]]
        run_inside("test", *job, *arguments[1:], also=also)
    if first in SELECTIONS:
        run_inside("test", "-m", "pytest", *SELECTIONS[first][1], *arguments[1:])
    if first == "compiled":
        arguments = arguments[1:]
        # Paths of the user's own take the place of the ones here.
        if not any(Path(argument.partition("::")[0]).exists() for argument in arguments):
            arguments = [*compiled_tests(), *arguments]
        run_inside("test", "-m", "pytest", *arguments, also=compile_to_test)
    run_inside("test", "-m", "pytest", *arguments)


def compile_to_test() -> None:
    """Let the tests import the compiled package; where nothing can be compiled, end here."""
    reason = obstacle()
    if reason:
        print(f"trionet: nothing is compiled here, so nothing of it is tested: {reason}")
        sys.exit(0)
    put_in_front()


def compile_to_measure() -> None:
    """Let a program import what pip installs here, which is the compiled package if it can be."""
    reason = obstacle()
    if reason:
        print(f"trionet: measuring pure Python: {reason}", file=sys.stderr)
    else:
        put_in_front()


if __name__ == "__main__":
    main(sys.argv[1:])
