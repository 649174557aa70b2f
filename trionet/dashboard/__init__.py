"""A terminal dashboard for trionet's broker and for any Kafka cluster.

Sources learn what there is to be known and feed the model; views make lines of the model; the app
shows them and takes keys. A source never draws, and the app never waits for a source.
"""
