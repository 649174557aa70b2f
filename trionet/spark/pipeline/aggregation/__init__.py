"""From log records to rows of sums that can be added up."""
