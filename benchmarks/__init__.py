"""CPU and memory benchmarks of the service: what ``make bench`` runs. Not installed.

node-oidc-provider runs in turn with it, so that results of different machines, or of the same machine under other
load, can be compared.
"""
