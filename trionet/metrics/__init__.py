"""What is measured: how, not by whom it is read."""
