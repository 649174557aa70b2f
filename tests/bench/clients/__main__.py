"""`python -m bench.clients LIBRARY WORK TASK`: one run; prints its figures as JSON."""

from __future__ import annotations

import importlib
import json
import sys

from bench.clients.task import Task

if __name__ == "__main__":
    library, work, task = sys.argv[1:]
    module = importlib.import_module(f"bench.clients.{library}")
    print(json.dumps(getattr(module, work)(Task.of(task))))
