"""What counts as one network address."""

import pytest

from identity.domain.ip_addresses import client_network


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:0db8:0001:0002::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("localhost", None),
        ("192.0.2.7:80", None),
        ("", None),
    ],
)
def test_ipv6_networks_count_as_one_address(address: str, network: str | None) -> None:
    assert client_network(address) == network
