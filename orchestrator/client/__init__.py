"""Where commands of people go: to a daemon over HTTP, or to the state folder itself; both answer the same methods."""
