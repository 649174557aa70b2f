"""Records as people write and read them on a command line: formats, offsets, times, pipes.

What is written is what is read: a format that ``trionet consume`` writes with, ``trionet produce``
reads with.
"""
