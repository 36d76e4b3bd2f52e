"""Secrets and signatures, as functions from values to values."""
