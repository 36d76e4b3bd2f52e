"""The default plugins: each can be imported alone and imports no other."""
