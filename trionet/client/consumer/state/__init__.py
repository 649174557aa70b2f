"""SubscriptionState: what is subscribed, positions, pauses, pending errors."""
