"""What the package offers by name, and that one of its families costs no more than itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.processes import SAME_TRIONET
from trionet.client import admin


def test_every_name_is_loaded_when_it_is_used() -> None:
    assert all(getattr(admin, name) is not None for name in admin.__all__)
    assert set(admin.__all__) <= set(dir(admin))


def test_another_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="Nobody"):
        _ = admin.Nobody  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_family_does_not_load_the_others() -> None:
    program = "import trionet.client.admin._groups, sys; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=SAME_TRIONET,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())

    assert "trionet.client.admin._groups" in loaded
    others = ("_access", "_admin", "_topics", "_transactions")
    assert not loaded & {f"trionet.client.admin.{name}" for name in others}
