"""Runnable stories: ``python3 demo`` plays :mod:`demo.flights`; the others are short."""
