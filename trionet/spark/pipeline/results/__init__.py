"""From rows of sums to the results of closed minutes: tables, anomalies, storage."""
