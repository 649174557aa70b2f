"""Metrics of a SocketServer, and the HTTP listener that serves them."""
