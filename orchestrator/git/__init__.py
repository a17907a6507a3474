"""Git: the command, the mirror, worktrees, merges, remotes."""
