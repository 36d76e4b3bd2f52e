"""PostgreSQL on three machines under Patroni, played in network namespaces of this one."""
