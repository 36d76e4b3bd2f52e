"""Plain frozen values and pure rules: no I/O, no clock, no randomness, standard library only.

Times are timezone-aware UTC datetimes in whole seconds, named ``*_at``; durations are timedeltas, named
``*_lifetime``, ``*_age`` or ``*_timeout``. Identifiers are opaque strings.
"""
