"""``trionet pipeline report``: turns the pipeline's Parquet files into tables, JSON or HTML.

Spark aggregates the data, which may be large, to results that are as small as the report.
Everything else is plain Python and does not need Spark.
"""
