"""Frozen values, enums and the transition table. No I/O, no clock, no randomness."""
