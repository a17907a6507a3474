"""Reports, the path of a story, the timeline."""
