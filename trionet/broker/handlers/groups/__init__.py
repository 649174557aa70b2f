"""The consumer group APIs: membership, offsets and administration."""
