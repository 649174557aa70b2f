from __future__ import annotations

import pytest

from support.scripted_leaders import Leaders
from trionet.testing import MemoryNetwork


@pytest.fixture
def leaders(network: MemoryNetwork) -> Leaders:
    return Leaders(network)
