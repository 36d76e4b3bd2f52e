"""One small interface per aggregate, named queries alone.

Common rules. ``find`` returns None if there is no such row. ``add`` raises DuplicateValue, naming the field, and
RowNotFound where what the row belongs to does not exist. ``update`` stores the value given, whose ``version`` must be
one more than the stored one: otherwise StaleRow (RowNotFound if there is no such row). ``delete`` raises RowNotFound
and takes dependent rows along. Lists are ordered by name (as name_key compares, then id) unless said.
After DuplicateValue, StaleRow, RowNotFound or AlreadyUsed the transaction can go on: nothing of the refused call is
left in it (but for ``tokens.add_access_token`` and ``audit.append``, which are too frequent to be guarded: abort after
those).
``organization_id`` arguments are tenant filters: rows of other organizations do not exist for the call.
"""
