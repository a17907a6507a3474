"""The board: pages that show sprints in a browser, rendered on the server."""
