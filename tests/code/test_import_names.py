"""Under which names distributions are imported."""

import pytest

from orchestrator.code.manifests.distributions import python_allowed


@pytest.mark.parametrize(
    ("module", "distribution"),
    [
        ("google.cloud.pubsub_v1", "google-cloud-pubsub"),
        ("google.cloud.secretmanager", "google-cloud-secret-manager"),
        ("opentelemetry.trace", "opentelemetry-api"),
        ("opentelemetry.sdk.trace.export", "opentelemetry-sdk"),
        ("argon2", "argon2-cffi"),
        ("factory", "factory-boy"),
        ("ninja", "django-ninja"),
        ("playhouse.shortcuts", "peewee"),
    ],
)
def test_names_under_which_packages_are_imported(module: str, distribution: str) -> None:
    assert python_allowed(module, frozenset({distribution}))
    assert not python_allowed(module, frozenset({f"{distribution}x", "google-cloud-storage", "rich"}))
