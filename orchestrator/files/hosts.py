"""Hosts and addresses: what is this machine, and what no proxy stands before."""

import ipaddress
import re


def is_loopback(host: str) -> bool:
    """Returns whether a name or an address, without brackets, is this machine whatever a resolver says."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = _address(name)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address is not None and address.is_loopback


def is_spared(no_proxy: str, host: str, port: int) -> bool:
    """Returns whether NO_PROXY names a host: by its name or a domain above it, its address or a network (CIDR), each
    also with a port behind it, or by `*`."""
    return any(_names(entry, host.lower().rstrip("."), port) for entry in re.split(r"[,\s]+", no_proxy) if entry)


def _names(entry: str, host: str, port: int) -> bool:
    # `[::1]:8080`, `host:8080`; an address of version 6 without brackets has no port.
    found = re.fullmatch(r"\[([^\]]+)\](?::(\d+))?|([^:]+):(\d+)", entry)
    name, only = (found[1] or found[3], found[2] or found[4]) if found is not None else (entry, None)
    if only is not None and int(only) != port:
        return False
    name = name.lower().removeprefix("*").strip(".")
    if not name:  # `*`
        return "*" in entry
    address = _address(host)
    if address is None:
        return host == name or host.endswith(f".{name}")
    try:
        return address in ipaddress.ip_network(name, strict=False)
    except ValueError:  # the name of a host
        return False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
