"""The console's pages for each kind of resource."""
