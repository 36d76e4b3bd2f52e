"""The default plugins: each is importable alone and knows no sibling."""
