"""Codecs of the versions before the first flexible version (KIP-482), imported on demand."""
