"""Incidents: the anomalies of one fault, their causes, and the client that they are of.

The modules of this package are private.
"""
