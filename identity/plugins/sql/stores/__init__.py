"""The SQL stores: one class per interface of the storage port, in a module of the same name."""
