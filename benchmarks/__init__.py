"""How fast the service is and how much memory it takes: what ``make bench`` runs. Nothing here is installed.

node-oidc-provider runs beside in the same minutes, so that figures of different machines, and of the same machine on a
bad day, can be compared.
"""
