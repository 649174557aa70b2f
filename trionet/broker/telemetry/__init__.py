"""What a broker reports about itself: metrics, snapshot sections, and the request log topic."""
