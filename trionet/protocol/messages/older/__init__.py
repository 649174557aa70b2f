"""Codecs of the versions before the flexible ones (KIP-482): loaded when a peer asks for them."""
