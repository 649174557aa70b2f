"""``trionet bench``: put load on a cluster or a server and measure how long each request takes.

Counting and pacing are pure; the commands are listed in :mod:`trionet.cli.bench`.
"""
