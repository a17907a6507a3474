"""Frozen values, errors, enums, ports and the transition table. No I/O, no clock, no randomness."""
