"""From a request frame to its handler and back: dispatch, calls, request counts."""
