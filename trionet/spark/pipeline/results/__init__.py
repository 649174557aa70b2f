"""The results directory: what readers may read, and how its files are merged and deleted.

The modules of this package are private.
"""
