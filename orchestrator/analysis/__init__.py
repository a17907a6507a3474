"""From a repository to an improvement plan to a backlog."""
