"""Wrong command lines are refused before any broker is asked."""

from __future__ import annotations

import pytest

from support.command_runs import Run

USAGE = "usage: "


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("topics trim orders -o x -y", "--offset x: expected a number"),
        ("topics trim orders -o -5 -y", "--offset -5: expected a number"),
        ("topics trim orders -o @nonsense -y", "invalid time 'nonsense'"),
        ("topics trim orders -y", USAGE),
        ("topics trim -o 5 -y", "give either TOPIC with --offset, or --from-file"),
        ("topics trim orders -f /dev/null -y", "give either TOPIC with --offset, or --from-file"),
        ("topics trim orders -o 5 -p x -y", "invalid partition 'x'"),
        ("topics trim orders -o 5 -f x -y", USAGE),
        ("groups reset billing", USAGE),
        ("groups reset billing --to-latest --to-earliest", USAGE),
        ("groups reset billing --to-offset x", USAGE),
        ("groups reset billing --to-time yesterday", "invalid time 'yesterday'"),
        ("groups reset billing --to-time 20270101 --execute", "8 digits could be a date"),
        ("groups reset billing --to-time 2026 --execute", "4 digits could be a date"),
        ("topics trim orders -o @20270101 -y", "8 digits could be a date"),
        ("topics offsets orders -t 20270101", "8 digits could be a date"),
        ("consume orders -o @20270101", "8 digits could be a date"),
        ("groups reset billing --to-latest -t orders:x", "invalid partition 'x'"),
        ("groups reset billing --to-file /nowhere", "cannot read /nowhere"),
        ("cluster elect-leaders", "give either TOPIC[:N,...] or --all"),
        ("cluster elect-leaders --all orders", "give either TOPIC[:N,...] or --all"),
        ("cluster elect-leaders orders:x", "invalid partition 'x'"),
        ("cluster log-dirs -i one", USAGE),
        ("transactions abort-hanging orders --start-offset 1", "invalid partition 'orders'"),
        ("transactions abort-hanging orders:0", USAGE),
        ("transactions describe", USAGE),
        ("configs alter topic orders", "nothing to change"),
        ("configs alter topic orders -s a", "must have the form KEY=VALUE"),
        ("configs alter topic orders -s a=1 --delete a", "changed more than once"),
        ("configs alter broker one -s a=1", "invalid broker 'one': expected a broker id, or"),
        ("configs alter logger default -s a=1", "invalid broker 'default'"),
        ("configs describe tpic", "invalid choice: 'tpic'"),
        ("configs list tpic", "unknown type 'tpic'"),
        ("configs quotas alter -s a=1", "no entity given"),
        ("configs quotas alter -n user=a", "nothing to change"),
        ("configs quotas alter -n usr=a -s a=1", "unknown type 'usr'"),
        ("configs quotas alter -n user=a --default user -s a=1", "more than once"),
        ("configs quotas alter -n user=a -s a=nan", "invalid value 'nan' for a"),
        ("configs quotas describe -n user=a --any user", "more than once"),
        ("configs acls create --topic t", "no principal given"),
        ("configs acls create --allow-principal a", "no resource given"),
        ("configs acls create --topic t --allow-principal a -o wrte", "unknown operation 'wrte'"),
        ("configs acls create --topic t --allow-principal a --deny-host h", "--deny-host requires"),
        (
            "configs acls create --topic t --deny-principal a --allow-host h",
            "--allow-host requires",
        ),
        ("configs users set alice", "the password is empty"),
        ("configs users set alice --iterations 1", "--iterations 1: expected 4096 to 16384"),
        ("configs users set alice --password-file /nowhere", "cannot read /nowhere"),
        ("config show broker", "--brokers applies to clients"),
        ("config show producer -X linger.ms=x", "-X: linger.ms = 'x' is not allowed"),
    ],
)
def test_wrong_usage_is_reported_before_any_broker_is_asked(
    line: str, message: str, run: Run
) -> None:
    done = run(*line.split(), "-b", "127.0.0.1:1")

    assert (2, "") == (done.status, done.out)
    assert message in done.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("config show broker -X num.partition=1", "the closest match is num.partitions"),
        ("config check /nowhere", "cannot read /nowhere"),
        ("config keys broker (", "invalid regular expression '('"),
    ],
)
def test_wrong_usage_of_settings_is_reported(line: str, message: str, run: Run) -> None:
    done = run(*line.split())

    assert (2, "") == (done.status, done.out)
    assert message in done.err
