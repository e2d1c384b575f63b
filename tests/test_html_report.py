"""report.html: one file that opens with no network, runs nothing, and shows people's text as text."""

from html.parser import HTMLParser

from orchestrator import html_report
from orchestrator.answer import build_report
from orchestrator.wording import one_line
from tests import report_example

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """What a browser would make of a page, as far as these tests ask."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.headings: list[str] = []
        self.cells: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def page() -> Page:
    return Page(html_report.render(report_example.report()))


def test_every_section_is_there_in_its_order() -> None:
    assert page().headings == [
        "Answer",
        "Leaderboard: cpu, torch 2.14.1, 2 threads, digits_cnn on digits, 20 epochs",
        "What each knob does",
        "Not ranked (2)",
        "Not run",
        "Findings",
        "Matched pairs: one knob changed, all else the same",
        "How it was measured and ranked",
        "Environment",
    ]


def test_every_tag_is_closed() -> None:
    assert page().open == []


def test_peoples_text_is_shown_and_is_never_a_tag() -> None:
    shown = page()
    assert one_line(report_example.HOSTILE) in shown.cells
    assert "script" not in shown.tags


def test_nothing_is_fetched_and_nothing_runs() -> None:
    shown = page()
    assert not {"script", "link", "img", "iframe"} & set(shown.tags)
    names = {name for name, _ in shown.attributes}
    assert not {name for name in names if name in ("src", "href", "style") or name.startswith("on")}
    text = html_report.render(report_example.report())
    assert "url(" not in text
    assert "@import" not in text


def test_the_leaderboard_has_the_numbers_of_the_report() -> None:
    cells = page().cells
    start = cells.index("1")
    assert cells[start : start + 9] == ["1", "bf16", "64", "off", "0.001", "0", "1,500", "1,437–1,565", "1.50×"]


def test_it_is_readable_in_the_dark_and_in_the_light() -> None:
    assert "prefers-color-scheme: dark" in html_report.render(build_report([]))


def test_a_report_of_nothing_is_a_page_too() -> None:
    shown = Page(html_report.render(build_report([])))
    assert "No trial has finished, so there is nothing to rank." in shown.texts
    assert shown.open == []
