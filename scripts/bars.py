"""Check the limits on the size of the code and of lines of text, and that every test asserts.

- a module has at most 500 lines;
- a function has at most 60 lines of code (docstrings, comments and blank lines do not count);
- a function has at most 10 parameters, the constructors of estimators excepted;
- a test function contains an assertion, or calls a helper that contains one;
- a line of prose in a Markdown file has at most 99 characters. Tables, code, formulas, images and
  links on lines of their own are not prose;
- a comment on lines of its own has at most 99 characters a line in all files but those of Python,
  where ruff checks comments and docstrings.

Prints one line per violation and exits with 1 if there are any.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULE_LINES, FUNCTION_LINES, PARAMETERS, PROSE = 500, 60, 10, 99
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}

CODE = ("src", "tests", "reliability", "benchmarks", "scripts")
MARKDOWN = ("*.md", ".github/**/*.md", "docs/**/*.md")
COMMENTED = ("Makefile", "*.toml", "*.yaml", ".ci/*", "reliability/*.c", "src/**/*.css", "src/**/*.js")
COMMENT = ("# ", "//", "/*", "* ")
NOT_PROSE = ("|", "    ", "![", "[")  # tables, code, images, links

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> int:
    violations = [
        *(violation for folder in CODE for violation in size_violations(ROOT / folder)),
        *tests_without_assertion(ROOT / "tests"),
        *long_lines(MARKDOWN, prose),
        *long_lines(COMMENTED, comments),
    ]
    for violation in violations:
        print(violation)
    return int(bool(violations))


def size_violations(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(ROOT)
        length = text.count("\n")
        if length > MODULE_LINES:
            yield f"{where}: {length} lines, at most {MODULE_LINES}"
        tree = ast.parse(text)
        code = code_lines(text, tree)
        constructors = estimator_constructors(tree) if {"models", "compat"} & set(path.parts) else set()
        for function in functions(tree):
            place = f"{where}:{function.lineno}: {function.name}"
            count = sum(function.lineno <= line <= (function.end_lineno or 0) for line in code)
            if count > FUNCTION_LINES:
                yield f"{place} has {count} lines of code, at most {FUNCTION_LINES}"
            names = parameters(function)
            if len(names) > PARAMETERS and function not in constructors:
                yield f"{place} has {len(names)} parameters, at most {PARAMETERS}"


def code_lines(text: str, tree: ast.Module) -> set[int]:
    """The numbers of the lines that hold code."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {
        line
        for token in tokens
        if token.type not in LAYOUT
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef | ast.Module) and ast.get_docstring(node, clean=False):
            docstring = node.body[0]
            lines -= set(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return lines


def functions(tree: ast.AST) -> list[Function]:
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def parameters(function: Function) -> list[str]:
    """The names of the parameters, without `self` and `cls`."""
    arguments = function.args
    unstarred = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    starred = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return [argument.arg for argument in [*unstarred, *starred] if argument.arg not in ("self", "cls")]


def estimator_constructors(tree: ast.Module) -> set[Function]:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return {method for node in classes for method in functions(node) if method.name == "__init__"}


def tests_without_assertion(folder: Path) -> Iterator[str]:
    """Test functions that neither assert nor call a function that does, directly or indirectly."""
    defined = [
        (path, function)
        for path in sorted(folder.rglob("*.py"))
        for function in functions(ast.parse(path.read_text(encoding="utf-8")))
    ]
    asserting = {function.name for _, function in defined if asserts(function)}
    calls = {function.name: called_names(function) for _, function in defined if not asserts(function)}
    while reached := {name for name, called in calls.items() if called & asserting} - asserting:
        asserting |= reached
    for path, function in defined:
        if function.name.startswith("test") and function.name not in asserting:
            yield f"{path.relative_to(ROOT)}:{function.lineno}: {function.name} asserts nothing"


def asserts(function: Function) -> bool:
    """Whether the body asserts, by pytest or NumPy too, or runs a subprocess that must succeed."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in ("pytest.raises", "pytest.warns", "pytest.fail") or ".assert_" in f".{name}":
                return True
            if "check=True" in map(ast.unparse, node.keywords):
                return True
    return False


def called_names(function: Function) -> set[str]:
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return {ast.unparse(called).rpartition(".")[2] for called in calls}


def long_lines(files: tuple[str, ...], numbered: Callable[[str], Iterator[tuple[int, str]]]) -> Iterator[str]:
    """The lines that are too long, of those that `numbered` finds in the text of files."""
    for path in sorted(path for pattern in files for path in ROOT.glob(pattern)):
        for number, line in numbered(path.read_text(encoding="utf-8")):
            if len(line) > PROSE:
                yield f"{path.relative_to(ROOT)}:{number}: {len(line)} characters, at most {PROSE}"


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines of prose of a Markdown file."""
    is_code = is_formula = False
    for number, line in enumerate(text.splitlines(), start=1):
        is_code ^= line.lstrip().startswith("```")
        is_prose = not (is_code or is_formula or line.startswith(NOT_PROSE) or "$$" in line)
        is_formula ^= line.count("$$") % 2 == 1
        if is_prose:
            yield number, line


def comments(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a file that are a comment, or part of one."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith(COMMENT):
            yield number, line


if __name__ == "__main__":
    sys.exit(main())
