"""How fast the service is and how much memory it takes: what ``make bench`` runs. Nothing here is installed.

Everything is counted in units of one RSA-2048 signature measured in the same run, so that figures of different
machines, and of the same machine on a bad day, can be compared.
"""

#: Names the ini file of the service to web servers that know no ini files.
INI_VARIABLE = "IDENTITY_BENCHMARK_INI"
