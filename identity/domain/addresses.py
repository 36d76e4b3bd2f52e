"""Network addresses."""

from ipaddress import IPv6Address, ip_address, ip_network

#: An address of IPv6 belongs to whoever has the network of this size.
_NETWORK = 64


def network_of(address: str) -> str | None:
    """What counts as one network address: of IPv6 a network. None for what is no address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or ip_network((parsed, _NETWORK), strict=False))
    return str(parsed)
