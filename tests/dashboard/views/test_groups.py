"""Groups, as they are seen."""

from __future__ import annotations

import attrs
import pytest

from support.shown import Shown, wanted_by
from trionet.dashboard.model._group_past import MOVED_SECONDS
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import GroupRow, LagRow, MemberRow
from trionet.dashboard.ui._view import Act

MEMBER = MemberRow(
    "m-1", None, "reader", "/10.0.0.7", (("orders", 0), ("orders", 2)), None, True, "syncing", 40.0
)


@pytest.fixture
def model() -> Model:
    model = Model()
    groups = [
        GroupRow(
            "billing",
            "classic",
            "Stable",
            "consumer",
            "range",
            1,
            12,
            1,
            7,
            3.0,
            (MEMBER,),
            (
                LagRow("orders", 0, 93, 5, 100, 7, "m-1"),
                LagRow("orders", 2, None, 0, 50, None, "m-1"),
            ),
        ),
        GroupRow("reports", "consumer", "Empty", "consumer"),
    ]
    model.update_groups({row.id: row for row in groups}, 1.0)
    return model


def test_a_group_is_a_line(model: Model) -> None:
    shown = Shown(model, "groups")

    assert ["billing", "Stable", "3.0", "s", "1", "7", "12", "classic", "range", "1"] == (
        shown.line("billing")
    )
    assert ["reports", "Empty", "consumer"] == shown.line("reports")
    assert ("groups", None) == wanted_by(shown)


def test_enter_shows_how_far_it_is_and_v_who_is_in_it(model: Model) -> None:
    shown = Shown(model, "groups")

    shown.press("enter")
    assert ("group", "billing") == wanted_by(shown)
    assert ["orders", "0", "93", "100", "7", "reader", "5"] == shown.line("93")
    assert ["orders", "2", "50", "reader", "0"] == shown.line("50")
    assert "Stable  1 member  lag 7  generation 12" in shown.text
    assert ["reader", "syncing", "7", "0", "2"] == shown.line("syncing")

    shown.press("v")
    assert ("group", "billing") == wanted_by(shown)
    assert ["reader", "/10.0.0.7", "2", "orders", "0,2", "syncing", "40", "s", "yes", "reader"] == (
        shown.line("syncing")
    )


def assigned(id: str, *numbers: int) -> MemberRow:
    """A member of a group that reads one topic."""
    return MemberRow(f"{id}-1234", None, id, "/10.0.0.7", tuple(("t", each) for each in numbers))


def read(at: float, lag: int | None, *members: MemberRow, state: str = "Stable") -> GroupRow:
    """What is read of a group at a time."""
    lags = tuple(LagRow("t", number, 10, 0, 10 + (lag or 0), lag, None) for number in range(4))
    return GroupRow(
        "g", "classic", state, "consumer", lag=lag, detail=members, lags=lags, read_at=at
    )


def map_of(shown: Shown) -> list[list[str]]:
    """The lines of the partition map, from its heading on."""
    lines = [line.split() for line in shown.text.splitlines()]
    begin = lines.index(["member", "lag", "t"])
    return lines[begin + 1 : lines.index([], begin)]


def test_the_map_shows_who_owns_which_partition() -> None:
    model = Model()
    model.update_groups({"g": read(1.0, 5, assigned("c-10", 2, 3), assigned("c-9", 0, 1))}, 1.0)
    shown = Shown(model, "groups")
    shown.press("enter")

    assert [["c-9", "10", "0", "1", "·", "·"], ["c-10", "10", "·", "·", "2", "3"]] == map_of(shown)


def members_with(client_id: str, *ids: str) -> tuple[MemberRow, ...]:
    """Members with one client id, each with a partition."""
    return tuple(
        MemberRow(id, None, client_id, "/10.0.0.7", (("t", number),))
        for number, id in enumerate(ids)
    )


@pytest.mark.parametrize("width", [80, 100, 120, 200])
@pytest.mark.parametrize(
    ("client_id", "names"),
    [
        ("app", ["app b7c1", "app 0d9e"]),
        ("settlement-of-card-payments", ["settlement-of b7c1", "settlement-of 0d9e"]),
    ],
)
def test_the_map_and_the_tables_call_a_member_the_same(
    client_id: str, names: list[str], width: int
) -> None:
    members = members_with(client_id, f"{client_id}-5f1ab7c1", f"{client_id}-5f1a0d9e")
    lags = tuple(
        LagRow("t", number, 10, 0, 15, 5, member.id) for number, member in enumerate(members)
    )
    group = GroupRow("g", "classic", "Stable", "consumer", lag=10, detail=members, lags=lags)
    model = Model()
    model.update_groups({"g": group}, 1.0)
    shown = Shown(model, "groups", width)

    text = shown.press("enter")
    for name in names:
        [of_map, of_table] = [line for line in text.splitlines() if name in line]
        assert of_map.startswith(f" {name} ")
        assert of_table.startswith(" t ")
    text = shown.press("v")
    assert [True] * 2 == [f"\n {name} " in text for name in names]


def test_members_with_a_common_prefix_in_their_client_ids_have_distinct_names() -> None:
    model = Model()
    row = read(1.0, 5, *(assigned(f"settlement-of-payments-{n}", n) for n in (0, 1)))
    members = tuple(
        attrs.evolve(each, id=f"m-{number}") for number, each in enumerate(row.detail or ())
    )
    model.update_groups({"g": attrs.evolve(row, detail=members)}, 1.0)
    shown = Shown(model, "groups")
    shown.press("enter")

    assert [["settlement-of", "m-0"], ["settlement-of", "m-1"]] == [
        line[:2] for line in map_of(shown)[:2]
    ]


def test_partitions_are_found_by_all_that_may_name_their_owner(model: Model) -> None:
    group = model.groups["billing"]
    static = attrs.evolve(MEMBER, instance_id="till-3")
    model.update_groups({"billing": attrs.evolve(group, detail=(static,))}, 1.0)
    for words in ("m-1", "reader", "till-3"):
        shown = Shown(model, "groups")
        shown.press("enter", "/", *words, "enter")
        assert "billing  2" in shown.text
        assert "0 of 2" not in shown.text


def test_the_lag_of_a_member_is_unknown_in_the_map_if_that_of_a_partition_is() -> None:
    model = Model()
    row = read(1.0, 5, assigned("a", 0, 1), assigned("b", 2), assigned("c", 3))
    first, second, third, fourth = row.lags or ()
    lags = (
        first,
        attrs.evolve(second, end=None, lag=None),
        third,
        attrs.evolve(fourth, committed=None, lag=None),
    )
    model.update_groups({"g": attrs.evolve(row, lags=lags)}, 1.0)
    shown = Shown(model, "groups")
    shown.press("enter")

    assert [["a", "0"], ["b", "5"], ["c", "·"]] == [line[:2] for line in map_of(shown)]


def test_columns_that_only_a_trionet_broker_fills_leave_their_room_to_others() -> None:
    model = Model()
    model.update_groups({"g": GroupRow("g", "classic", "Stable", "consumer", lag=3)}, 1.0)
    text = Shown(model, "groups", 200).text

    assert "LAG" in text
    for title in ("SINCE", "UNREAD", "GEN"):
        assert title not in text


def test_what_has_moved_in_a_rebalance_is_marked_for_a_while() -> None:
    model = Model()
    model.update_groups({"g": read(1.0, 5, assigned("a", 0, 1, 2, 3))}, 1.0)
    shown = Shown(model, "groups")
    shown.press("enter")

    model.update_groups({"g": read(2.0, 5, state="PreparingRebalance")}, 2.0)
    assert [["no", "member", "20", "0", "1", "2", "3"]] == map_of(shown)
    after = read(3.0, 5, assigned("a", 0, 1), assigned("b", 2, 3))
    model.update_groups({"g": after}, 3.0)
    assert [["a", "10", "0", "1", "·", "·"], ["b", "10", "·", "·", "+2", "+3"]] == map_of(shown)
    model.update_groups({"g": attrs.evolve(after, read_at=3.0 + MOVED_SECONDS)}, 20.0)
    assert ["b", "10", "·", "·", "2", "3"] == map_of(shown)[1]


def test_a_map_that_is_too_wide_has_no_numbers() -> None:
    model = Model()
    row = read(1.0, None, assigned("a", *range(40)), assigned("b", *range(40, 80)))
    model.update_groups({"g": row}, 1.0)
    shown = Shown(model, "groups")
    shown.press("enter")

    first, second = map_of(shown)
    assert ["█" * 40 + "·" * 40] == first[-1:]
    assert ["·" * 40 + "█" * 40] == second[-1:]


def test_lag_has_a_history_with_a_step_of_two_seconds() -> None:
    model = Model()
    for at, lag in ((0.0, 1), (1.0, 9), (1.5, 2), (4.5, 4)):
        model.update_groups({"g": read(at, lag, assigned("a", 0, 1, 2, 3))}, at)

    history = model.groups["g"].history
    assert history is not None
    assert [9.0, 2.0, 4.0] == history.values()


def with_position(position: int) -> dict[str, object]:
    return {
        "id": "billing",
        "state": "Stable",
        "state_seconds": 3.0,
        "generation": 12,
        "protocol_type": "consumer",
        "protocol": "range",
        "members": [],
        "positions": [["orders", 0, position]],
    }


def test_a_position_that_is_read_after_the_end_moves_the_end(model: Model) -> None:
    for _ in range(2):
        model.update_group_internals([with_position(110)], 2.0)
    shown = Shown(model, "groups")

    shown.press("enter")
    assert ["orders", "0", "93", "110", "110", "17", "0", "reader", "5"] == shown.line("93")
    assert "lag 17  unread 0" in shown.text


@pytest.mark.parametrize(
    "lags",
    [
        (LagRow("orders", 0, None, 0, 100, None, "m-1"),),
        # The end of a partition is unknown: a part of the lag would look like all of it.
        (LagRow("orders", 0, 93, 0, 100, 7, "m-1"), LagRow("orders", 1, 93, 0, None, None, "m-1")),
    ],
    ids=["no commit", "no end"],
)
def test_a_lag_that_is_unknown_stays_so_beside_positions(lags: tuple[LagRow, ...]) -> None:
    model = Model()
    row = GroupRow("billing", "classic", "Stable", "consumer", members=1, lags=lags)
    model.update_groups({"billing": row}, 1.0)

    model.update_group_internals([with_position(99)], 2.0)

    assert (None, 1) == (model.groups["billing"].lag, model.groups["billing"].unread)


def test_the_position_is_beside_what_is_committed(model: Model) -> None:
    model.update_group_internals([with_position(99)], 2.0)
    shown = Shown(model, "groups")

    shown.press("enter")
    assert ["orders", "0", "93", "99", "100", "7", "1", "reader", "5"] == shown.line("93")
    assert "lag 7  unread 1" in shown.text


def test_a_group_that_is_gone_is_said_so(model: Model) -> None:
    shown = Shown(model, "groups")
    shown.press("enter")
    model.update_groups({}, 2.0, all_of={"reports"})

    assert "the group no longer exists" in shown.text


def test_a_reset_is_asked_for_and_confirmed(model: Model) -> None:
    shown = Shown(model, "groups")
    shown.press("R")
    assert "use start, end, an offset" in shown.type("soon")
    shown.press("ctrl-u")
    shown.type("-10")
    assert "Reset billing to -10 in all its topics?" in shown.type("")
    shown.press("y")

    [act] = shown.effects
    assert isinstance(act, Act)
    assert ("reset", ("-10", "")) == (act.action.name, act.answers)
