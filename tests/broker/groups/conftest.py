"""A group with a clock of its own, for tests of its state machine."""

from __future__ import annotations

import pytest

from support.groups import GroupRig


@pytest.fixture
def rig() -> GroupRig:
    return GroupRig()
