from orchestrator.story.context import environment_of


def test_no_two_workflows_share_an_environment() -> None:
    ids = ("S/A", "S/A@2", "S/A-2", "S/A.2", "S-A/2", "S/merge")
    keys = {environment_of(workflow) for workflow in ids} | {"S-base"}
    assert len(keys) == len(ids) + 1
