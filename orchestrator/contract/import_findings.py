"""What is said of an imported module, in one wording for every language."""

from orchestrator.contract.world import World
from orchestrator.domain.findings import Finding, Where, major, minor, policy
from orchestrator.syntax.python_source import Import

_SHOWN = 120
"""Characters of a name."""


def undeclared(world: World, item: Import, name: str, where: Where) -> Finding:
    """A package that nothing declares: the architect is asked, unless only a function imports it when it runs."""
    allowed = ", ".join(sorted(world.dependencies)) or "none"
    message = f"`{item.module[:_SHOWN]}` is imported, but nothing declares `{name[:_SHOWN]}`"
    fix = f"Declare the package, or use one of the declared ones: {allowed}."
    place = where.model_copy(update={"field": name[:160]})
    if item.lazy:
        return minor("contract.import", message, where=place, fix=fix)
    return policy("contract.import", message, where=place, fix=fix)


def transitive(module: str, name: str, where: Where) -> Finding:
    """A package that is there because another one requires it."""
    message = (
        f"`{module[:_SHOWN]}` is imported, and `{name[:_SHOWN]}` is there only because another package requires it"
    )
    place = where.model_copy(update={"field": name[:160]})
    return minor("contract.transitive", message, where=place, fix=f"Declare `{name[:_SHOWN]}` beside it.")


def missing_module(module: str, where: Where) -> Finding:
    """A module of the project itself that is nowhere."""
    message = f"`{module[:_SHOWN]}` is imported, but the project has no such file, and the plan brings none"
    place = where.model_copy(update={"field": module[:160]})
    fix = "Import a module that is there, or put what is needed into one of this task's files."
    return major("contract.missing_module", message, where=place, fix=fix)
