"""The group membership of a consumer: rebalances, heartbeats and committed offsets."""
