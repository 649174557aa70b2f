"""A terminal dashboard for trionet's broker and for any Kafka cluster.

Sources read what can be known and update the model; views turn the model into lines; the app draws
them and takes keys. A source never draws, and the app never waits for a source.
"""
