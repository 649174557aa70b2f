"""Opens logs after clean and unclean shutdowns (LogLoader), and detects missing records."""
