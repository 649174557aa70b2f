"""``trionet configs acls``, ``quotas`` and ``users``: ACLs, client quotas and credentials."""
