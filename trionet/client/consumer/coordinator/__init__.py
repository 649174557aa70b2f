"""A consumer's part in its group: membership, its rebalances, and the offsets it commits."""
