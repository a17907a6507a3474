"""Whether a proxy of this machine stands before a model's server, as its variables say."""

from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from orchestrator.files.hosts import is_loopback, is_spared

_PORTS = {"http": 80, "https": 443}


def proxy_before(base_url: str) -> str:
    """Returns host and port of the proxy that requests to an address go through; "" where they go directly.

    This machine itself is behind none, whatever the variables say.
    """
    url, proxies = urlsplit(base_url), getproxies()
    host, port = url.hostname or "", url.port or _PORTS.get(url.scheme, 443)
    proxy = proxies.get(url.scheme) or proxies.get("all") or ""
    if not proxy or is_loopback(host) or is_spared(proxies.get("no", ""), host, port):
        return ""
    return urlsplit(proxy if "://" in proxy else f"http://{proxy}").netloc.rpartition("@")[2]


def own_client(base_url: str, timeout: Any) -> dict[str, Any]:
    """Returns what an SDK is given for an address that no proxy stands before; nothing where it looks for one itself.

    Its own client would ask this machine's proxy for this machine, and for networks that NO_PROXY names.
    """
    import httpx2  # takes a second, which only a command that calls a model has

    if not base_url or proxy_before(base_url):
        return {}
    # Without the variables' proxies, and with their certificates.
    certificates = httpx2.create_ssl_context()
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
    client = httpx2.AsyncClient(
        trust_env=False, verify=certificates, timeout=timeout, limits=limits, follow_redirects=True
    )
    return {"http_client": client}
