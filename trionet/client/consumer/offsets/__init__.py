"""OffsetFetcher: offsets by time, resets, and validation of positions."""
