"""``trionet configs acls``, ``quotas`` and ``users``: who may do what, and how much of it."""
