"""Network addresses."""

from ipaddress import IPv6Address, ip_address, ip_network

#: An address of IPv6 belongs to whoever has the network of this size.
_NETWORK = 64

#: What one client can well have addresses of: a provider's customer has that much of IPv6, and its neighbours of IPv4.
_FAIR_SHARE_PREFIXES = {4: 24, 6: 48}


def client_network(address: str) -> str | None:
    """What counts as one network address: of IPv6 a network. None for what is no address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or ip_network((parsed, _NETWORK), strict=False))
    return str(parsed)


def fair_share_network(address: str) -> str:
    """The network that shares places as one client; empty for what is no address."""
    network = client_network(address)
    if network is None:
        return ""
    parsed = ip_network(network)
    return str(parsed.supernet(new_prefix=_FAIR_SHARE_PREFIXES[parsed.version]))
