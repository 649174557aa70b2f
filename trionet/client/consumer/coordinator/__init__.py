"""The part of a consumer that takes part in a group: membership, rebalances, committed offsets."""
