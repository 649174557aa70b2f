"""Causes: what the anomalies of a minute have in common, and which client they are of."""
