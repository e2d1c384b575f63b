"""What Markdown documents hold: links, anchors, fenced blocks, and the `python -m` commands in them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

IGNORED_FOLDERS = frozenset({".git", ".hypothesis", ".pytest_cache", ".venv", "build", "dist", "runs", "v"})
MACHINE_PATH = re.compile(r"(?<![\w.~])/(?:root|work|Users|mnt|home/(?!ray\b|ubuntu\b))[\w/.-]*|[A-Z]:\\\\?\w+")
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def documents(root: Path) -> list[Path]:
    """Every Markdown file of the checkout, but for what is built, run or installed in it."""
    found = sorted(root.rglob("*.md"))
    return [path for path in found if not IGNORED_FOLDERS & set(path.relative_to(root).parts)]


def fenced_blocks(text: str) -> list[tuple[str, str]]:
    """Language and content of each block."""
    return FENCE.findall(text)


def links(text: str) -> Iterator[str]:
    """Targets of links and images, but for those with a scheme."""
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text)):
        if "://" not in target and not target.startswith("mailto:"):
            yield target


def heading_anchors(text: str) -> set[str]:
    """As GitHub makes them."""
    headings = re.findall(r"^#+ +(.+?) *#*$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def machine_paths(text: str) -> list[str]:
    return MACHINE_PATH.findall(text)


def commands(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Module and arguments of each `python -m`, in blocks of shell commands and in inline code."""
    for language, block in fenced_blocks(text):
        if language in ("", "bash", "sh", "console", "yaml"):
            for line in block.replace("\\\n", " ").splitlines():
                yield from _commands_in(line)
    for span in re.findall(r"`([^`\n]+)`", FENCE.sub("", text)):
        yield from _commands_in(span)


def _commands_in(line: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for part in re.findall(r"python3? -m (?:[^'\"&|;#]|'[^']*'|\"[^\"]*\"|#(?! ))*", line):
        _, _, module, *arguments = shlex.split(part, comments=False)
        yield module, tuple(arguments)


def is_placeholder(word: str) -> bool:
    """A word that stands for another: RUN, SPACE.yaml, [options], my_space.yaml, …."""
    if word.startswith("my_"):
        return True
    return bool(re.search(r"…|\.\.\.|^\[|\]$|^<", word) and "=" not in word) or bool(re.match(r"[A-Z][A-Z_|]*\b", word))
