"""The configuration APIs, which list, describe and alter the settings of resources."""
