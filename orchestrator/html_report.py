"""A report as one HTML file that opens with no network and runs no script, for report.html."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from orchestrator.answer import RunReport
from orchestrator.report_sections import sections


def render(report: RunReport) -> str:
    return _template().render(sections=list(sections(report)))


@cache
def _template() -> Template:
    """Every value is escaped: names and reasons come from people's code."""
    environment = Environment(
        loader=PackageLoader("orchestrator", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.jinja")
