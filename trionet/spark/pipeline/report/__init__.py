"""``trionet pipeline report``: turns the pipeline's Parquet files into tables, JSON or HTML.

Spark reduces the data, which may be large, to aggregates about as large as the report. All other
code is plain Python and does not need Spark.
"""
