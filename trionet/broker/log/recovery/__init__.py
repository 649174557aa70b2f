"""Opening a log after a clean or an unclean stop (LogLoader), and what is missing of it."""
