"""The APIs of consumer groups: members, offsets, and administration."""
