"""``trionet config`` (settings on this machine) and ``trionet configs`` (settings of a cluster)."""
