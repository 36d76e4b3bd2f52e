"""Rows to domain values and back: one class per interface of the port, in a file of the same name."""
