"""Which addresses are on the public internet, for connections that strangers choose.

    IPv4: any that IANA's special-purpose registry does not list as not globally reachable
    IPv6: global unicast, 2000::/3, less what the registry takes out of it

So whatever else there is in IPv6, now or later, is refused: loopback, link-local, unique local and
site-local addresses, and those that hold an IPv4 address which a gateway would unpack (mapped,
compatible, NAT64). Registries: RFC 6890, as of November 2026.
"""

from __future__ import annotations

import ipaddress

SPECIAL_IPV4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared: networks of providers
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local, and what clouds tell their machines
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4, given up
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
        ),
    )
)
GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")
SPECIAL_IPV6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4: holds an IPv4 address
            "3fff::/20",  # documentation
        ),
    )
)


def is_public(address: str) -> bool:
    """Whether this address, as text, is one of the public internet. Raises ValueError."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return not any(found in network for network in SPECIAL_IPV4)
    return found in GLOBAL_IPV6 and not any(found in network for network in SPECIAL_IPV6)
