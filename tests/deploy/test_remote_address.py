"""Which addresses of repositories are taken, and that none with a password gets further, or into a message."""

import pytest

from orchestrator.core.errors import RepositoryError
from orchestrator.git.remote_access import is_address, remote_address


@pytest.mark.parametrize(
    ("text", "protocol", "user", "host", "branch"),
    [
        ("https://example.org/team/project.git", "https", "", "example.org", ""),
        ("https://example.org/team/project", "https", "", "example.org", ""),
        ("https://example.org:8443/p.git#develop", "https", "", "example.org:8443", "develop"),
        ("https://anna@example.org/team/p.git", "https", "anna", "example.org", ""),
        ("https://anna@example.org/team/_git/p#feature/x", "https", "anna", "example.org", "feature/x"),
        ("HTTPS://example.org/p", "https", "", "example.org", ""),
        ("git@example.org:team/project.git", "ssh", "git", "example.org", ""),
        ("git@example.org:/srv/project.git#v2.x", "ssh", "git", "example.org", "v2.x"),
        ("git@[::1]:p.git", "ssh", "git", "[::1]", ""),
        ("ssh://git@example.org:2222/~/project.git", "ssh", "git", "example.org:2222", ""),
        ("ssh://example.org/project.git", "ssh", "", "example.org", ""),
        ("file:///srv/project.git", "file", "", "", ""),
        ("http://127.0.0.1:3000/p.git", "http", "", "127.0.0.1:3000", ""),
        ("http://[::1]:3000/p.git", "http", "", "[::1]:3000", ""),
        ("http://forge.railway.internal:3000/team/p.git", "http", "", "forge.railway.internal:3000", ""),
        ("  https://example.org/p.git\n", "https", "", "example.org", ""),
    ],
)
def test_addresses_of_repositories(text: str, protocol: str, user: str, host: str, branch: str) -> None:
    assert is_address(text.strip())
    address = remote_address(text)
    assert (address.protocol, address.user, address.host, address.branch) == (protocol, user, host, branch)
    assert str(address) == text.strip()
    assert "#" not in address


@pytest.mark.parametrize(
    "text",
    [
        "https://anna:Zq8rT4xW@example.org/p.git",
        "https://:Zq8rT4xW@example.org/p.git",
        "https://anna:a/Zq8rT4xW@example.org/p.git",
        "https://anna:a#Zq8rT4xW@example.org/p.git",
        "https://anna:a@Zq8rT4xW@example.org/p.git",
        "https://ghp_Zq8rT4xWZq8rT4xWZq8rT4xWZq8rT4xW@example.org/p.git",
        "https://x-access-token:Zq8rT4xW@example.org/p.git#main",
        "ssh://git:Zq8rT4xW@example.org/p.git",
        "https://example.org/p.git?private_token=Zq8rT4xW",
        "http://example.org/p.git",
        "http://internal/p.git",
        "http://127.0.0.1.example.org/p.git",
        "git://example.org/p.git",
        "ftp://example.org/p.git",
        "ext::sh -c id",
        "ext::id%20>x",
        "https://",
        "https://example.org",
        "https://example.org/",
        "https:///p.git",
        "https://exa mple.org/p.git",
        "https://example.org/p.git\nhttps://other.example.org/q.git",
        "https://example.org%0a.evil.org/p.git",
        "https://-oProxyCommand=id/p.git",
        "ssh://-oProxyCommand=id/p.git",
        "ssh://git@-oProxyCommand=id/p.git",
        "https://example.org:port/p.git",
        "https://example.org/p.git#-f",
        "https://example.org/p.git#a b",
        "https://example.org/p.git#a:b",
        "https://example.org/p.git#a\x1b[31m",
        "file://host/p.git",
        "file://relative/p.git",
        "https://example.org\\@evil.org/p.git",
    ],
)
def test_what_is_no_address_that_can_be_used(text: str) -> None:
    assert is_address(text)
    with pytest.raises(RepositoryError) as told:
        remote_address(text)
    assert "Zq8rT4xW" not in told.value.message
    assert told.value.message.isprintable()


@pytest.mark.parametrize("text", ["project", "../p", "/srv/p.git", "C:project", "a@b", "~/x", "host:p", "."])
def test_folders_are_no_addresses(text: str) -> None:
    assert not is_address(text)


def test_the_copy_of_one_repository_is_one_folder_whatever_its_branch() -> None:
    one, two = remote_address("https://example.org/a/p.git"), remote_address("https://example.org/a/p.git#x")
    other = remote_address("https://example.org/b/p.git")
    assert one.slug == two.slug != other.slug
    assert one.slug.startswith("p-")
    assert remote_address("git@example.org:..").slug.startswith("git-example.org")
