"""Computes and stores the results of closed minutes from rows of sums."""
