"""Test doubles and builders, for our tests and for those of users."""
