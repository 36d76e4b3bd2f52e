"""One small interface per aggregate, with named queries only.

Common rules. ``get`` raises RowNotFound, ``find`` returns None. ``add`` raises DuplicateValue with the field, and
RowNotFound if a parent does not exist. ``update`` stores the value, whose ``version`` must be one more than the
stored one: otherwise StaleRow (RowNotFound if there is no such row). ``delete`` raises RowNotFound and deletes
dependent rows, too. Lists are ordered by name (compared by name_key, then id) unless stated otherwise. After
DuplicateValue, StaleRow, RowNotFound or AlreadyUsed the transaction can continue: the refused call leaves no effect
(except ``tokens.add_access_token`` and ``audit.append``, which are too frequent to be guarded: abort after those).
``organization_id`` arguments are tenant filters: rows of other organizations do not exist for the call.
"""
