"""Formats of records on the command line.

Output and input use the same formats: ``trionet produce`` reads the output of ``trionet consume``
with the same format.
"""
