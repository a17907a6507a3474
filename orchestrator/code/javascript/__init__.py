"""JavaScript and TypeScript sources."""
