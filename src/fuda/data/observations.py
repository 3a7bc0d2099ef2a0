"""Observations: what a node shows. All observations of a corpus are of one kind.

========  ==========================================  ==============================================
kind      given as                                    two are equal when
========  ==========================================  ==============================================
text      a string                                    they are the same string
columns   a tuple of strings or integers              every column is
features  a dict feature → value, or a list or set    the dicts, lists or sets are equal
          of feature names
id        an integer                                  the integers are
vector    a 1-D numeric array or list of numbers      every number is
========  ==========================================  ==============================================

Each kind is a class, which says how such an observation is checked and brought into its *plain*
form, by what key equal ones are recognized, what a named feature set makes of it, and how it is
written as JSON. A new kind is a new class here and an entry of `KINDS`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fuda.errors import DataError, described, short
from fuda.features.sets import FEATURE_SETS

# str | int | tuple of columns | dict feature → value | set or list of feature names | 1-D numeric array
Observation = Any

_CONTAINERS = frozenset([dict, list, set, frozenset])
_MAX_DEPTH = 100  # of dicts within dicts of features
_JSON_FORMS = (
    "a string, an integer, an array of strings or of numbers, "
    '{"columns": [strings]}, {"set": [strings]}, {"features": {name: value}}'
)


class ObservationKind:
    """Base of the kinds: text is the simplest, and most methods do for it.

    Attributes
    ----------
    name : str
        The name in model files.
    description : str
        The words of error messages; ``{}`` stands for the size.
    recurs : bool
        Whether the same observation is expected again and again, as words are.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    recurs: ClassVar[bool] = True

    def accepts(self, x: Any) -> bool:
        """Whether x is given as this kind of observation."""
        raise NotImplementedError

    def plain(self, x: Any) -> Observation:
        """The observation in its plain form; DataError where it is malformed."""
        raise NotImplementedError

    def key(self, plain: Any) -> Hashable:
        """A key that equal observations, and no others, share."""
        return plain

    def size(self, plain: Any) -> int:
        """How many columns or numbers the observation has; 0 where any number is fine."""
        return 0

    def features(self, plain: Any, feature_set: Callable[[str], list[str]]) -> Any:
        """The features of the observation by a named feature set."""
        return plain

    def stored(self, plain: Any) -> Any:
        """The JSON value of model files."""
        return plain

    def written(self, x: Any) -> Any:
        """The JSON value of JSON lines, of an observation as it was given."""
        return self.plain(x)


class Text(ObservationKind):
    name, description = "text", "a string"

    def accepts(self, x: Any) -> bool:
        return isinstance(x, str)

    def plain(self, x: Any) -> str:
        return str(x)

    def features(self, plain: Any, feature_set: Callable[[str], list[str]]) -> list[str]:
        return feature_set(plain)


class Columns(ObservationKind):
    name, description = "columns", "a tuple of {} columns"

    def accepts(self, x: Any) -> bool:
        return isinstance(x, tuple)

    def plain(self, x: Any) -> tuple[str | int, ...]:
        if not x or not all(isinstance(value, str | int) and not isinstance(value, bool) for value in x):
            raise DataError(
                f"{described(x)}: a tuple is one or more columns of text; give a numeric vector as an array"
            )
        return x

    def size(self, plain: Any) -> int:
        return len(plain)

    def features(self, plain: Any, feature_set: Callable[[str], list[str]]) -> list[str]:
        further = [f"column{i}={value}" for i, value in enumerate(plain[1:], start=1)]
        return feature_set(str(plain[0])) + further

    def stored(self, plain: Any) -> dict[str, Any]:
        return {"columns": list(plain)}

    def written(self, x: Any) -> dict[str, Any]:
        return {"columns": list(map(_text, x))}


class Id(ObservationKind):
    name, description = "id", "an integer id"

    def accepts(self, x: Any) -> bool:
        return isinstance(x, int | np.integer) and not isinstance(x, bool)

    def plain(self, x: Any) -> int:
        return int(x)

    def features(self, plain: Any, feature_set: Callable[[str], list[str]]) -> list[str]:
        return [f"id={plain}"]


class Vector(ObservationKind):
    name, description, recurs = "vector", "a vector of {} numbers", False

    def accepts(self, x: Any) -> bool:
        return isinstance(x, np.ndarray) or (isinstance(x, list) and bool(x) and not isinstance(x[0], str))

    def plain(self, x: Any) -> np.ndarray:
        try:
            array = np.asarray(x)
            if array.dtype.kind not in "biuf":
                raise ValueError
            vector = np.ascontiguousarray(array, dtype=np.float64)
        except (ValueError, TypeError):
            raise DataError(
                f"{described(x)} is no numeric vector; vectors are 1-D arrays of numbers"
            ) from None
        if array.ndim != 1 or not array.size:
            raise DataError(
                f"an array of shape {array.shape}; an observation is a 1-D numeric vector of at least one "
                "number"
            )
        if not np.isfinite(vector).all():
            bad = int(np.argmin(np.isfinite(vector)))
            raise DataError(f"entry {bad} of its vector is {vector[bad]}; entries are finite numbers")
        return vector + 0.0  # −0.0 and 0.0 are equal

    def key(self, plain: Any) -> Hashable:
        return np.ndarray, plain.tobytes()

    def size(self, plain: Any) -> int:
        return len(plain)

    def stored(self, plain: Any) -> dict[str, Any]:
        return {"vector": plain.tolist()}

    def written(self, x: Any) -> list[Any]:
        if isinstance(x, list):  # only an array would be read back as it was given
            return list(map(_text, x))
        self.plain(x)
        return x.astype(np.float64).tolist()


class Features(ObservationKind):
    name, description, recurs = "features", "a dict or list of features", False

    def accepts(self, x: Any) -> bool:
        return isinstance(x, dict | list | set | frozenset)

    def plain(self, x: Any) -> dict[str, float | str | bool] | list[str]:
        return plain_features(x)

    def key(self, plain: Any) -> Hashable:
        if isinstance(plain, list):
            return (list, *plain)
        names = sorted(plain)
        return (dict, *names, *map(plain.__getitem__, names))

    def stored(self, plain: Any) -> Any:
        return {"features": plain} if isinstance(plain, dict) else plain

    def written(self, x: Any) -> Any:
        if isinstance(x, dict):
            return {"features": {_text(name): _scalar(name, _python(value)) for name, value in x.items()}}
        return list(map(_text, x)) if isinstance(x, list) else {"set": sorted(map(_text, x))}


# A list of numbers is a vector and any other list features: vectors are asked first.
KINDS: dict[str, ObservationKind] = {
    kind.name: kind for kind in (Text(), Columns(), Vector(), Features(), Id())
}


class Kind(NamedTuple):
    """The kind of all observations of a corpus.

    Attributes
    ----------
    name : str
        One of `KINDS`.
    size : int
        How many columns or numbers observations have, 0 where that is open.
    """

    name: str
    size: int = 0

    def __str__(self) -> str:
        return KINDS[self.name].description.format(self.size)

    @property
    def of(self) -> ObservationKind:
        """The class of these observations."""
        return KINDS[self.name]

    @property
    def possible(self) -> bool:
        """Whether the name is known, and the size one that such observations have."""
        return self.name in list(KINDS) and ("{}" in self.of.description) == (self.size > 0)


def kind_of(x: Observation) -> ObservationKind:
    """The kind that x is given as; DataError where it is not an observation.

    >>> kind_of(("Lima", "NP")).name
    'columns'
    """
    for kind in KINDS.values():
        if kind.accepts(x):
            return kind
    raise DataError(
        f"{described(x)} is no observation; give a string, a tuple of columns, a dict feature → value, a "
        "list or set of feature names, an integer id or a numeric vector"
    )


def same_observation(a: Observation, b: Observation) -> bool:
    """Whether two observations are given alike and equal."""
    return type(a) is type(b) and bool(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b)


def extract(features: str | Callable[[Any], Any], observation: Observation) -> Any:
    """The features of one observation, by a named set or by the user's function.

    >>> extract("word", ("Lima", "NP"))
    ['w=Lima', 'column1=NP']
    """
    if not isinstance(features, str):
        return features(observation)
    return kind_of(observation).features(observation, FEATURE_SETS[features])


def plain_features(x: Any, depth: int = 1) -> Any:
    """A dict feature → float, string or boolean, or a list of feature names, in order where x has one.

    As in CRFsuite's items a value may be a list or set of strings, {"a": ["x", "y"]} being
    {"a=x": True, "a=y": True}, and a dict, {"a": {"b": 2}} being {"a:b": 2}. `depth` counts the
    dicts around x, itself included.
    """
    if depth > _MAX_DEPTH:
        raise DataError(f"a dict of features is nested more than {_MAX_DEPTH} deep; flatten it")
    if isinstance(x, dict):
        if not _CONTAINERS.isdisjoint(map(type, x.values())):
            x = _flat(x, depth)
        return {
            _name(name): value if type(value) in (str, bool) else _value(value, name)
            for name, value in x.items()
        }
    names = list(map(_name, x))
    return sorted(names) if isinstance(x, set | frozenset) else names


def _flat(x: dict[Any, Any], depth: int) -> dict[Any, Any]:
    """A dict of features without containers among its values."""
    flat: dict[Any, Any] = {}
    for name, value in x.items():
        if isinstance(value, dict):
            features = plain_features(value, depth + 1)
            flat |= {f"{_name(name)}:{inner}": v for inner, v in features.items()}
        elif type(value) in _CONTAINERS:
            flat |= {f"{_name(name)}={_name(inner)}": True for inner in value}
        else:
            flat[name] = value
    return flat


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise DataError(f"{described(name)} is no feature name; feature names are strings")
    return str(name)


def _value(value: Any, name: str) -> float | str | bool:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, np.bool_):
        return bool(value)
    try:
        number = float(value) if isinstance(value, int | float | np.integer | np.floating) else math.nan
    except OverflowError:  # an integer past all floats
        number = math.inf
    if not math.isfinite(number):
        raise DataError(
            f"feature {name!r} has the value {described(value)}; values are finite numbers, strings or "
            "booleans"
        )
    return number


def to_stored(plain: Observation) -> str:
    """A line of JSON, as model files hold it, of an observation in plain form.

    >>> to_stored(("Lima", "NP")), from_stored('{"columns": ["Lima", "NP"]}')
    ('{"columns": ["Lima", "NP"]}', ('Lima', 'NP'))
    """
    return json.dumps(kind_of(plain).stored(plain), ensure_ascii=False)


def from_stored(line: str) -> Observation:
    """The observation of a line of a model file; whether it is one is for the corpus to check."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise DataError("one of its observations is not readable") from None
    if not isinstance(found, dict):
        return found
    if "vector" in found:
        return np.array(found["vector"], dtype=np.float64)
    return tuple(found["columns"]) if "columns" in found else found.get("features")


def to_json(x: Observation) -> Any:
    """The JSON value of an observation in JSON lines: plain Python values that `from_json` reads back."""
    x = _python(x)
    for kind in KINDS.values():
        if kind.accepts(x):
            return kind.written(x)
    raise DataError(f"the observation {short(x)} ({type(x).__name__}) has no JSON form")


def from_json(value: Any) -> Observation:
    """The observation of a JSON value of JSON lines; DataError where it is not one."""
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, list):
        return value if all(isinstance(item, str) for item in value) else _numbers(value)
    if isinstance(value, dict) and len(value) == 1:
        (form, inner), *_ = value.items()
        texts = isinstance(inner, list) and all(isinstance(item, str) for item in inner)
        if form == "columns" and texts:
            return tuple(inner)
        if form == "set" and texts:
            if len(set(inner)) < len(inner):
                raise DataError(f"the set {short(inner)} names a feature twice; keep it once")
            return set(inner)
        if form == "features" and isinstance(inner, dict):
            return {name: _scalar(name, x) for name, x in inner.items()}
    raise DataError(f"the observation {short(value)} is none of: {_JSON_FORMS}")


def _numbers(values: list[Any]) -> np.ndarray:
    """A vector of JSON numbers."""
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        raise DataError(
            f"the array {short(values)} is neither of strings (feature names) nor of numbers (a vector)"
        )
    try:
        vector = np.array([float(value) for value in values])
    except OverflowError:
        vector = np.array([math.inf])
    if not np.isfinite(vector).all():
        raise DataError("a vector holds a number too large for a 64-bit float; give finite numbers")
    return vector


def _scalar(name: str, value: Any) -> str | bool | int | float:
    """The value of a feature as JSON has it."""
    if not isinstance(value, str | bool | int | float) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise DataError(
            f"the feature {short(name)} has the value {short(value)}; give a finite number, a string or a "
            "boolean"
        )
    return value


def _python(value: Any) -> Any:
    """A NumPy scalar as the Python value that it stands for."""
    return value.item() if isinstance(value, np.generic) else value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise DataError(f"{short(value)} ({type(value).__name__}) where a string is expected; make it one")
    return str(value)
