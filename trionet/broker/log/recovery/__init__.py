"""Opening a log after a clean or an unclean stop (LogLoader): scanning, truncation, missing records."""
