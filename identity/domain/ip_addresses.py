"""Networks of client addresses."""

from ipaddress import IPv6Address, ip_address, ip_network

#: An IPv6 address counts as its network of this prefix length.
_NETWORK = 64

#: Prefix lengths that one client may control: a provider's customer gets that much of IPv6, and its neighbours of IPv4.
_FAIR_SHARE_PREFIXES = {4: 24, 6: 48}


def client_network(address: str) -> str | None:
    """The address that attempts are counted for; an IPv6 address stands for its network. None if the text is not an
    address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or ip_network((parsed, _NETWORK), strict=False))
    return str(parsed)


def fair_share_network(address: str) -> str:
    """The network that shares slots as one client; empty if the text is not an address."""
    network = client_network(address)
    if network is None:
        return ""
    parsed = ip_network(network)
    return str(parsed.supernet(new_prefix=_FAIR_SHARE_PREFIXES[parsed.version]))
