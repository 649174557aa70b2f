"""``trionet configs acls``, ``quotas`` and ``users``: permissions, client quotas, credentials."""
