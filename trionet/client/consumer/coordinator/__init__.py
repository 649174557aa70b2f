"""A consumer's side of its group: membership, rebalances, and committed offsets."""
