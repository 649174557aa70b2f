"""The result of each record: Delivery and its errors."""
