"""The revisions, one file each, numbered."""
