"""PostgreSQL on three machines under Patroni, simulated by network namespaces."""
