"""Draw what a command prints on a terminal, as an SVG that loads nothing from elsewhere.

script -qec "COLUMNS=92 fuda demo 2> /dev/null" /dev/null |
    python scripts/picture.py docs/_static/demo.svg
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text


def main() -> None:
    text = Text.from_ansi(sys.stdin.read().replace("\r", ""))
    width = max(map(len, text.plain.splitlines()), default=80)
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(text)
    picture = console.export_svg(title="fuda demo", unique_id="fuda")
    fonts = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
    picture = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL).replace("Fira Code", fonts)
    Path(sys.argv[1]).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
