"""What is killed when: the same for the same seed, and nothing is left out."""

from __future__ import annotations

from spark_kills.run import CLUSTER_KINDS, KINDS, plan


def test_a_seed_always_gives_the_same() -> None:
    assert plan(5, 4, KINDS) == plan(5, 4, KINDS)
    assert plan(5, 4, KINDS) != plan(8, 4, KINDS)


def test_successive_seeds_begin_with_every_kind() -> None:
    assert set(KINDS) == {plan(seed, 3, KINDS)[0].kind for seed in range(3, 6)}


def test_the_first_one_waits_until_the_job_works() -> None:
    plans = [plan(seed, 3, ["broker"]) for seed in range(50)]

    assert not any(each[0].is_at_once for each in plans)
    assert any(kill.is_at_once for each in plans for kill in each)
    assert {"broker"} == {kill.kind for each in plans for kill in each}


def test_where_there_are_transactions_some_kills_wait_for_a_commit_and_others_do_not() -> None:
    plans = [plan(seed, 8, CLUSTER_KINDS, commits=True) for seed in range(10)]

    assert {True, False} == {kill.is_at_commit for each in plans for kill in each}
    assert set(CLUSTER_KINDS) == {kill.kind for each in plans for kill in each}
    assert not any(kill.is_at_commit for kill in plan(1, 50, KINDS))
