"""The console's pages of each kind of resource."""
