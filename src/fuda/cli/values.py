"""Parameters of learners from the command line: literals, kernels, and other learners.

A kernel is written as ``polynomial(2).normalized()``, see `fuda.kernels.expressions`; a learner
within another by its name, with parameters where they differ from defaults: ``prior=crf``,
``base=crf(l2=0.5, features=word)``.
"""

from __future__ import annotations

import ast
from typing import Any

from fuda.errors import DataError, short
from fuda.registry import MODELS, model_class

LEARNERS = {model.command: name for name, model in MODELS.items()}
_BY_NAME = {name.lower(): name for name in MODELS} | {
    command.replace("-", "_"): name for command, name in LEARNERS.items()
}
_KERNELS, _LEARNERS = ("kernel", "label_kernel"), ("prior", "base")
_EXAMPLE = "write a learner such as crf or crf(l2=0.5)"


def parameter(name: str, text: str) -> Any:
    """The value of a parameter from its text.

    >>> parameter("kernel", "linear + delta"), parameter("l2", "0.5")
    (Linear() + Delta(), 0.5)
    >>> parameter("prior", "uniform")
    'uniform'
    >>> parameter("prior", "crf(l2=0.5)")
    CRF(l2=0.5)
    """
    from fuda.kernels.expressions import syntax_of

    if name not in (*_KERNELS, *_LEARNERS):
        return literal(text)
    for command in LEARNERS:  # of which some are not identifiers
        text = text.replace(command, command.replace("-", "_"))
    return _value(name, syntax_of(text, "write it as a name, or as a name with parameters in parentheses"))


def literal(text: str) -> Any:
    """Convert a value from the command line.

    >>> [literal(text) for text in ("2", "0.5", "true", "None", "word", "'2'")]
    [2, 0.5, True, None, 'word', '2']
    """
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, SystemError):
        return text  # a SystemError is how the parser of Python 3.12 runs out of memory


def _value(name: str, syntax: ast.expr) -> Any:
    """The value of a parameter from its syntax."""
    from fuda.kernels.expressions import kernel_of, literal_of

    literal_value = literal_of(syntax) if isinstance(syntax, ast.Name | ast.Constant) else ...
    if name in _KERNELS and literal_value is not None and not isinstance(syntax, ast.List | ast.Tuple):
        return kernel_of(syntax)
    if name in _LEARNERS and literal_value not in (None, "uniform"):
        return _learner(name, syntax)
    return literal_of(syntax)


def _learner(name: str, syntax: ast.expr) -> Any:
    """An unfitted learner that is a parameter of another."""
    match syntax:
        case ast.Name(called) | ast.Constant(str(called)):
            keywords: list[ast.keyword] = []
        case ast.Call(ast.Name(called), [], keywords):
            pass
        case _:
            raise DataError(f"{name}={short(ast.unparse(syntax))} is not a learner; {_EXAMPLE}")
    if called.lower() not in _BY_NAME:
        raise DataError(f"{name}={called}: there is no such learner; there are {', '.join(LEARNERS)}")
    cls = model_class(_BY_NAME[called.lower()])
    known, arguments = cls._get_param_names(), dict[str, Any]()
    for keyword in keywords:
        inner = str(keyword.arg)
        if inner not in known or inner in arguments:
            what = f"{name}={called}({inner}=…)"
            raise DataError(f"{what}: {called} has the parameters {', '.join(known)}, each given once")
        arguments[inner] = _value(inner, keyword.value)
    learner = cls(**arguments)
    learner._check_parameters()
    return learner
