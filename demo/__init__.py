"""Runnable stories: ``python3 demo`` plays :mod:`demo.flights`; :mod:`demo.netstrings` is short."""
