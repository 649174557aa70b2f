"""Computes the figures of a report from the pipeline's Parquet files."""
