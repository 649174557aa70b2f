"""Codecs of versions before the first flexible one (KIP-482), imported when a peer uses them."""
