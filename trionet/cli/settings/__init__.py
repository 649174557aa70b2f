"""``trionet config`` (local settings) and ``trionet configs`` (settings in a cluster)."""
