"""SubscriptionState: subscriptions, positions, pauses, pending errors."""
