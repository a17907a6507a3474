"""Whole sprints: a scripted team, real git, real pytest."""
