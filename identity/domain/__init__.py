"""Plain frozen values and pure rules: no I/O, no clock, no randomness, standard library alone.

Moments are aware UTC datetimes in whole seconds and end in ``_at``; spans are timedeltas and end in
``_lifetime``, ``_age`` or ``_timeout``. Identifiers are opaque strings.
"""
