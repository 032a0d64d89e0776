"""Sentences of the documentation can be read once: none has more than 45 words.

A sentence ends at a full stop, a question mark or an exclamation mark before a space, or with its
paragraph or its list's item; a colon or a semicolon ends none. Code and links' addresses count as
one word or none. Headings, tables, code blocks, HTML and displayed formulas are not prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
MOST = 45

BLOCKS = re.compile(r"^( *)```.*?^\1```$|^\$\$.*?\$\$$|<!--.*?-->", re.M | re.S)
NO_PROSE = re.compile(r"^\s*(#|\||<)")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
END = re.compile(r"(?<=[.!?])[\"”')*]*\s+")
SHORT = re.compile(r"\b(e\.g|i\.e|vs|cf|al|Fig|Eq)\.$")
WORD = re.compile(r"\w")


def paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs and list items, each on one line."""
    lines: list[str] = []
    for line in [*BLOCKS.sub("\n\n", text).splitlines(), ""]:
        begins = not line.strip() or NO_PROSE.match(line) or ITEM.match(line)
        if begins and lines:
            yield " ".join(lines)
            lines = []
        if line.strip() and not NO_PROSE.match(line):
            lines.append(ITEM.sub("", line).strip())


def plain(paragraph: str) -> str:
    """Return the text without what is no word of a sentence: addresses, code, signs of emphasis."""
    text = re.sub(r"`[^`]*`", "code", paragraph)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*\*|\$[^$]*\$", "", text)


def sentences(text: str) -> Iterator[str]:
    for paragraph in paragraphs(text):
        begun = ""
        for part in END.split(plain(paragraph)):
            begun = f"{begun} {part}".strip()
            if not SHORT.search(begun):
                yield begun
                begun = ""
        if begun:
            yield begun


def length(sentence: str) -> int:
    return sum(1 for word in sentence.split() if WORD.search(word))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sentence_is_too_long(page: Path) -> None:
    long = [each for each in sentences(page.read_text()) if length(each) > MOST]
    assert not long, "\n".join(f"{length(each)} words: {each}" for each in long)


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("One two. Three four, five: six; seven? Eight.\n", [2, 5, 1]),
        ("As Lin et al. say, `a b c` is [one word](of/a page.md).\n", [9]),
        ("It says:\n\n- one thing,\n- and another\n  on two lines.\n", [2, 2, 5]),
        ("# A heading. Of two.\n\n| a table. |\n|---|\n\n```py\nsome. Code\n```\nEnd.\n", [1]),
        ('**Bold.** He said "no." Then 1.5 – 2.0 went.\n', [1, 3, 4]),
    ],
)
def test_sentences_are_counted_as_one_reads(text: str, lengths: list[int]) -> None:
    assert [length(each) for each in sentences(text)] == lengths
