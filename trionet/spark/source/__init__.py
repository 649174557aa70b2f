"""Reading topics: planning in the driver, fetching and decoding in the executors."""
