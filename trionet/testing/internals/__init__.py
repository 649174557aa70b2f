"""Access to the internals of a running broker: its loop, groups, records and async operations."""
