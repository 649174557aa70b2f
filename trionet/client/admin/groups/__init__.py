"""Groups, their offsets, and transactions."""
