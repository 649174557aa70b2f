"""``trionet bench``: load for a cluster or a server, and how long each request took.

What counts and decides when the next record is due is pure; the commands are the modules that are
named in :mod:`trionet.cli.bench`.
"""
