"""A terminal dashboard for trionet's broker and for any Kafka cluster.

Sources read data and update the model, views render the model as lines, and the app draws the lines
and handles keys. A source never draws, and the app never waits for a source.
"""
