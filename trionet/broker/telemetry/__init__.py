"""What a broker reports of itself: metrics, snapshot sections, and the request log topic."""
