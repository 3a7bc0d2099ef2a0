"""Sphinx: `make docs` builds the site into build/docs. Pages load nothing from elsewhere."""

from __future__ import annotations

import inspect
import re
import sys
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from matplotlib import rcParams
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath, TextToPath
from sphinx.util import logging

import fuda

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from public_modules import public_modules, reference_names  # noqa: E402

PATHS = TextToPath()
rcParams["mathtext.fontset"] = "stix"
LETTERS = {TextPath.MOVETO: "M", TextPath.LINETO: "L", TextPath.CURVE3: "Q", TextPath.CURVE4: "C"}
LETTERS |= {TextPath.CLOSEPOLY: "Z"}

project, author = "Fuda", "the Fuda developers"
version = release = fuda.__version__
project_copyright = author

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery/*", "auto_gallery/*.md5", "auto_gallery/*.py", "auto_gallery/*.ipynb"]
templates_path = ["_templates"]
default_role = "code"  # as the docstrings use single backquotes
suppress_warnings = ["config.cache"]  # of own_methods, a function

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_dmath_allow_digits = False
myst_heading_anchors = 3

autodoc_typehints = "none"  # numpydoc's sections have the types
numpydoc_show_class_members = False  # the template of classes lists them
numpydoc_use_plots = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "show_memory": False,
    "write_computation_times": False,  # a page that loads scripts from elsewhere
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 60,
    "run_stale_examples": True,  # plots change with the package, not only with their examples
    "within_subsection_order": "FileNameSortKey",
    "matplotlib_animations": False,
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "pydata_sphinx_theme"
html_title = "Fuda"
html_static_path = ["_static"]
html_css_files = ["fuda.css"]
html_math_renderer = "drawn"
html_show_sourcelink = False
html_copy_source = False
html_favicon = "_static/fuda.svg"
html_theme_options = {
    "logo": {"text": "Fuda", "image_light": "_static/fuda.svg", "image_dark": "_static/fuda.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
WIDE = ("index", "tutorial", "which_learner", "project", "migration/*")
html_sidebars: dict[str, list[str]] = {page: [] for page in WIDE}


def own_methods(module: str, name: str) -> list[str]:
    """The public methods of a class that it or another class of the package defines."""
    found = getattr(import_module(module), name)
    methods = {item: getattr(found, item, None) for base in found.__mro__ for item in vars(base)}
    return sorted(
        item
        for item, value in methods.items()
        if item[0] != "_" and inspect.isroutine(value) and str(getattr(value, "__module__", ""))[:4] == "fuda"
    )


def write_reference() -> None:
    """Write a page per public module, so that the reference cannot lag behind the package."""
    pages = {}
    for module in public_modules():
        name = module.__name__
        summary = (inspect.getdoc(module) or "").split("\n\n")[0]
        names = reference_names(module)
        classes = [item for item in names if inspect.isclass(getattr(module, item))]
        functions = [item for item in names if inspect.isroutine(getattr(module, item))]
        lines = [f"{name}\n{'=' * len(name)}\n\n{summary}\n\n.. currentmodule:: {name}\n"]
        for title, items in (("Classes", classes), ("Functions", functions)):
            if items:
                listed = "".join(f"   {item}\n" for item in items)
                options = "   :toctree: generated\n   :nosignatures:\n"
                lines.append(f"{title}\n{'-' * len(title)}\n\n.. autosummary::\n{options}\n{listed}")
        pages[name] = "\n".join(lines)
    for name, text in pages.items():
        path = HERE / "api" / f"{name}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


write_reference()
autosummary_generate = sorted(f"api/{path.name}" for path in (HERE / "api").glob("*.rst"))
autosummary_context = {"own_methods": own_methods}


def spaced(formula: str) -> str:
    """A formula as matplotlib needs it: braces in fractions, spaces around bars and after sums."""
    braced = re.sub(r"(\\d?frac)(\w)(\w)", r"\1{\2}{\3}", " ".join(formula.split()))
    barred = braced.replace("||", r"\Vert ").replace("|", r"\mid ")
    limit = r"(?:\{(?:[^{}]|\{[^{}]*\})*\}|\w)"
    return re.sub(rf"(\\(?:sum|prod)(?:_{limit})?(?:\^{limit})?)", r"\1\,", barred)


def drawn(formula: str, size: float = 1.15) -> str:
    """A formula as an SVG in the colour of the text, so that pages need no script and no font."""
    tex, font = f"${spaced(formula)}$", FontProperties(size=100)
    width, height, depth = PATHS.get_text_width_height_descent(tex, font, True)
    path = TextPath((0, 0), tex, prop=font)
    box = f"-4 {depth - height - 4:.0f} {width + 8:.0f} {height + 8:.0f}"
    lines = []
    for points, code in path.iter_segments(curves=True, simplify=False):
        letter = LETTERS[code]
        lines.append(letter + ("" if letter == "Z" else " ".join(f"{v:.0f}" for v in points)))
    style = f"width:{(width + 8) * size / 100:.2f}em;vertical-align:{-(depth + 4) * size / 100:.2f}em"
    label = escape(" ".join(formula.split()), quote=True)
    opening = f'<svg class="formula" role="img" aria-label="{label}" viewBox="{box}" style="{style}">'
    return f'{opening}<path transform="scale(1 -1)" d="{"".join(lines)}"/></svg>'


def write_formula(translator: Any, node: nodes.math | nodes.math_block) -> None:
    """Write a formula; one that cannot be drawn is a warning, and its text is written."""
    try:
        picture = drawn(node.astext())
    except ValueError as error:
        logging.getLogger(__name__).warning("formula: %s", error, location=node)
        picture = escape(node.astext())
    block = isinstance(node, nodes.math_block)
    translator.body.append(f'<div class="formula">{picture}</div>' if block else picture)
    raise nodes.SkipNode


def of_constructor(app: Any, kind: str, name: str, value: Any, *rest: Any) -> tuple[str, None] | None:
    """The signature of a class that checks names in `__new__`: that of its constructor."""
    if kind != "class" or "__new__" not in {item for base in value.__mro__[:-1] for item in vars(base)}:
        return None
    _, *parameters = inspect.signature(value.__init__).parameters.values()
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return str(inspect.Signature(plain)), None


def setup(app: Any) -> None:
    app.connect("autodoc-process-signature", of_constructor)
    app.add_html_math_renderer("drawn", (write_formula, None), (write_formula, None))
