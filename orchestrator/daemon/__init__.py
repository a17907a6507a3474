"""The daemon: watch backlogs, start sprints, shut down."""
