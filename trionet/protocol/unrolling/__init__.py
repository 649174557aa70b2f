"""Codecs that are made from the layouts of messages, with everything unrolled."""
