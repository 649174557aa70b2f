"""From the pipeline's Parquet files to the figures of a report."""
