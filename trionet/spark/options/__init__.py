"""The options of the source and the sink."""
