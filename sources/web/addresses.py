"""Which network addresses may be reached: public ones only, judged after the name was resolved."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Sequence
from typing import Protocol

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SITE_LOCAL = ipaddress.IPv6Network("fec0::/10")
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
"""IPv4 written as IPv6: no public name has one. Python 3.13 judges it by the address inside, 3.11 calls it reserved."""
_SHARED = ipaddress.IPv4Network("100.64.0.0/10")
"""Carrier-grade NAT: neither private nor public for `ipaddress`, and somebody's inner network."""


class Resolver(Protocol):
    """Name to addresses; a Protocol so that tests can rebind a name between two look-ups."""

    def __call__(self, host: str, port: int, /) -> Sequence[str]:
        """Every address of the host as text. Raises OSError."""
        ...


def system_resolver(host: str, port: int) -> Sequence[str]:
    """The machine's own resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


def resolve_within(resolver: Resolver, host: str, port: int, seconds: float) -> Sequence[str]:
    """The resolver's answer, or TimeoutError: a look-up has no time limit of its own. Raises OSError."""
    answer: list[str] = []
    errors: list[Exception] = []

    def look_up() -> None:
        try:
            answer.extend(resolver(host, port))
        except Exception as error:  # noqa: BLE001 - handed to the caller's thread
            errors.append(error)

    thread = threading.Thread(target=look_up, name="resolve", daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    if thread.is_alive():
        raise TimeoutError(f"the name {host} was not resolved in time")
    if errors:
        raise errors[0]
    return answer


def is_public(text: str) -> bool:
    """Whether the address is one of the public internet, and so is every IPv4 address that is written inside it."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(_is_public(one) for one in (address, *_embedded(address)))


def is_own_network(text: str) -> bool:
    """Whether it is loopback or private: what may be reached when the user has named exactly this host and port.

    Link-local addresses, where clouds keep their metadata, are not.
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
        return True  # Stands or falls with the address inside.
    if address.is_multicast or address.is_reserved or address.is_unspecified or address.is_link_local:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and address not in _SHARED
    return address.is_global and address not in _SITE_LOCAL and address not in _MAPPED


def _embedded(address: IPAddress) -> tuple[ipaddress.IPv4Address, ...]:
    """IPv4 addresses that a router, or this machine, would take out of an IPv6 one."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    if address in _NAT64:
        return (ipaddress.IPv4Address(int(address) & 0xFFFFFFFF),)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return address.teredo
    return ()
