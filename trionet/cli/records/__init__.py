"""Formats of records on a command line.

The same formats serve for output and input: ``trionet produce`` reads what ``trionet consume``
writes with the same format.
"""
