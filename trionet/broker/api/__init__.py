"""The path of a request from its frame to its handler: dispatch, calls and request counts."""
