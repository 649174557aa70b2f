"""A consumer's group membership: rebalances, heartbeats and committed offsets."""
