"""Resolve names, and judge whether an address is public."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SITE_LOCAL = ipaddress.IPv6Network("fec0::/10")
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
"""IPv4 written as IPv6, which no public name has. Python 3.13 judges it by the IPv4 address, 3.11 as reserved."""
_SHARED = ipaddress.IPv4Network("100.64.0.0/10")
"""Carrier-grade NAT, an inner network that `ipaddress` calls neither private nor public."""


Resolver = Callable[[str, int], Sequence[str]]
"""Returns all addresses of a host and port as text. Raises OSError. Fetching processes have a deadline of their own."""


def system_resolver(host: str, port: int) -> Sequence[str]:
    """Resolve a name by the machine's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


def is_public(text: str) -> bool:
    """Whether an address is public, with every IPv4 address inside of it."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(_is_public(one) for one in (address, *_embedded(address)))


def is_own_network(text: str) -> bool:
    """Whether an address is loopback or private; it may be reached if the user has named this host and port.

    Not link-local addresses, at which clouds serve their metadata.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if address in _MAPPED:
        return False
    if address.is_loopback:
        return True
    return address.is_private and not (address.is_link_local or address.is_unspecified or address.is_reserved)


def _is_public(address: IPAddress) -> bool:
    if address in _NAT64:
        return True  # The IPv4 address inside decides.
    if address.is_multicast or address.is_reserved or address.is_unspecified or address.is_link_local:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and address not in _SHARED
    return address.is_global and address not in _SITE_LOCAL and address not in _MAPPED


def _embedded(address: IPAddress) -> tuple[ipaddress.IPv4Address, ...]:
    """Return the IPv4 addresses that a router, or this machine, would take out of an IPv6 address."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    if address in _NAT64:
        return (ipaddress.IPv4Address(int(address) & 0xFFFFFFFF),)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return address.teredo
    return ()
