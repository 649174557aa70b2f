"""The results of records: Delivery and its errors."""
