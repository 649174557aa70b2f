"""Print the outcome of each call as JSON, and whether the calls were to compiled modules."""

from __future__ import annotations

import json
import logging

import trionet
from builds.clients import add_client_calls
from builds.outcomes import Calls
from builds.records import add_record_calls

if __name__ == "__main__":
    logging.disable()
    records, clients = Calls(tells_types=False), Calls(tells_types=True)
    add_record_calls(records)
    add_client_calls(clients)
    found = {"compiled": trionet.is_compiled()}
    found["outcomes"] = {**records.outcomes, **clients.outcomes}  # type: ignore[assignment]
    print(json.dumps(found))
