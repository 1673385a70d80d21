"""By what a peer is counted."""

import pytest

from core_console.addresses import neighbourhood


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix", "unix"),
        ("", ""),
    ],
)
def test_a_peer_is_its_address_or_its_network_of_ipv6(host: str, counted: str) -> None:
    assert neighbourhood(host) == counted
