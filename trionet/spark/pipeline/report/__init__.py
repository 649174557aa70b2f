"""``trionet pipeline report``: from the pipeline's Parquet to tables, JSON, and a page of HTML.

Spark adds up what may be large, on whatever it runs: its results are as small as the report.
All else is plain Python, and needs no Spark.
"""
