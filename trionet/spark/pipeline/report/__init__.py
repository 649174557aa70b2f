"""``trionet pipeline report``: turns the pipeline's Parquet files into tables, JSON or HTML.

Spark aggregates the data, which may be large, into results no larger than the report. All other
code is plain Python and does not need Spark.
"""
