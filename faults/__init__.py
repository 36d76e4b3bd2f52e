"""Fault injection: faults under a service with load, and whether acknowledged data survives them."""
