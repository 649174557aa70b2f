"""The configuration APIs: listing, describing and altering the settings of resources."""
