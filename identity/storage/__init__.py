"""The storage port: interfaces, a reference backend in memory, and the contract that every backend passes."""
