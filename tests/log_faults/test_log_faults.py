"""A short walk of the machine that ``python3 tests log-faults`` runs for a long time."""

from __future__ import annotations

import pytest
from hypothesis import settings

from log_faults.machine import LogUnderFaults

pytestmark = [pytest.mark.slow, pytest.mark.interpreted]

TestLogUnderFaults = LogUnderFaults.TestCase
TestLogUnderFaults.settings = settings(max_examples=40, stateful_step_count=30)
