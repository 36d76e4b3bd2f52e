"""One small interface per aggregate, named queries alone.

Common rules. ``get`` raises Missing, ``find`` returns None. ``add`` raises Duplicate, naming the field, and
Missing where what the row belongs to does not exist. ``update`` stores the value given, whose ``version`` must be one
more than the stored one: otherwise Stale (Missing if there is no such row). ``remove`` raises Missing and takes
dependent rows along. Lists are ordered by name (as name_key compares, then id) unless said.
``organization_id`` arguments are tenant filters: rows of other organizations do not exist for the call.
"""
