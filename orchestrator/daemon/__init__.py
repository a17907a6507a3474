"""The daemon: watch backlogs, start sprints, reload, shut down."""
