"""Observations of nodes. All observations of a corpus are of the same kind.

========  ==========================================  ======================================
kind      given as                                    two are equal if
========  ==========================================  ======================================
text      a string                                    they are the same string
columns   a tuple of strings or integers              all columns are equal
features  a dict feature → value, or a list or set    the dicts, lists or sets are equal
          of feature names
id        an integer                                  the integers are equal
vector    a 1-D numeric array or list of numbers      all numbers are equal
========  ==========================================  ======================================

Each kind is a class that defines how an observation is checked and converted to its *plain* form,
the key that equal observations share, and the JSON forms. To add a kind, add a class here and an
entry in `KINDS`.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fuda.checks import is_number, is_whole
from fuda.errors import DataError, described, short

# str | int | tuple of columns | dict feature → value | set or list of feature names | 1-D
# numeric array
Observation = Any

_CONTAINERS = frozenset([dict, list, set, frozenset, np.ndarray])
_MAX_DEPTH = 100  # the largest depth of dicts within dicts of features
_JSON_FORMS = (
    "a string, an integer, an array of strings or of numbers, "
    '{"columns": [strings]}, {"set": [strings]}, {"features": {name: value}}'
)


class ObservationKind:
    """Base class of the kinds of observations, with defaults for text and integers.

    Attributes
    ----------
    name : str
        The name in model files.
    description : str
        The text for error messages; ``{}`` is replaced by the size.
    types : tuple of type
        The types of observations of this kind; the first is that of the plain form.
    recurs : bool
        Whether the same observation is expected many times, as words are.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    types: ClassVar[tuple[type, ...]]
    recurs: ClassVar[bool] = True

    def plain(self, x: Any) -> Observation:
        """Return the observation in its plain form; DataError if it is malformed."""
        return self.types[0](x)

    def key(self, plain: Any) -> Hashable:
        """Return a key that equal observations share, and no others."""
        return plain

    def size(self, plain: Any) -> int:
        """Return the number of columns or of vector entries; 0 for kinds without a fixed size."""
        return 0

    def vector_lengths(self, x: Any) -> Iterable[tuple[str, int]]:
        """Return the names and lengths of vectors within an observation as the user gave it."""
        return ()

    def to_stored(self, plain: Any) -> Any:
        """Return the JSON value used in model files."""
        return self.to_json(plain)

    def to_json(self, x: Any) -> Any:
        """Return the JSON value used in JSON lines, of an observation as the user gave it."""
        return self.plain(x)


class TextKind(ObservationKind):
    """Strings."""

    name, description, types = "text", "a string", (str,)


class ColumnsKind(ObservationKind):
    """Tuples of columns."""

    name, description, types = "columns", "a tuple of {} columns", (tuple,)

    def plain(self, x: Any) -> tuple[str | int, ...]:
        if not x or not all(isinstance(value, str | int) and not isinstance(value, bool) for value in x):
            raise DataError(
                f"{described(x)}: a tuple is one or more columns of text; give a numeric vector as an array"
            )
        return x

    def size(self, plain: Any) -> int:
        return len(plain)

    def to_stored(self, plain: Any) -> dict[str, Any]:
        return {"columns": list(plain)}

    def to_json(self, x: Any) -> dict[str, Any]:
        return {"columns": list(map(_text, x))}


class IdKind(ObservationKind):
    """Integers."""

    name, description, types = "id", "an integer id", (int, np.integer)


class VectorKind(ObservationKind):
    """Numeric vectors, plain as float64 arrays."""

    name, description, types, recurs = "vector", "a vector of {} numbers", (np.ndarray,), False

    def plain(self, x: Any) -> np.ndarray:
        try:
            array = np.asarray(x)
            if array.dtype.kind not in "biuf":
                raise ValueError
            vector = np.ascontiguousarray(array, dtype=np.float64)
        except (ValueError, TypeError):
            raise DataError(f"{described(x)} is not a numeric vector; give a 1-D array of numbers") from None
        if array.ndim != 1 or not array.size:
            raise DataError(
                f"an array of shape {array.shape}; give a 1-D numeric vector of at least one number"
            )
        if not np.isfinite(vector).all():
            bad = int(np.argmin(np.isfinite(vector)))
            raise DataError(f"entry {bad} of its vector is {vector[bad]}; entries are finite numbers")
        return vector + 0.0  # −0.0 and 0.0 are equal

    def key(self, plain: Any) -> Hashable:
        return np.ndarray, plain.tobytes()

    def size(self, plain: Any) -> int:
        return len(plain)

    def to_stored(self, plain: Any) -> dict[str, Any]:
        return {"vector": plain.tolist()}

    def to_json(self, x: Any) -> list[Any]:
        if isinstance(x, list):  # only an array is read back as it was given
            return list(map(_text, x))
        self.plain(x)
        return x.astype(np.float64).tolist()


class FeaturesKind(ObservationKind):
    """Dicts feature → value, and lists and sets of feature names."""

    name, description, types = "features", "a dict or list of features", (dict, list, set, frozenset)
    recurs = False

    def plain(self, x: Any) -> dict[str, float | str | bool] | list[str]:
        return plain_features(x)

    def key(self, plain: Any) -> Hashable:
        if isinstance(plain, list):
            return (list, *plain)
        names = sorted(plain)
        return (dict, *names, *map(plain.__getitem__, names))

    def vector_lengths(self, x: Any) -> Iterable[tuple[str, int]]:
        return vector_lengths(x)

    def to_json(self, x: Any) -> Any:
        if isinstance(x, dict):
            return {"features": {_text(name): self._json_value(name, value) for name, value in x.items()}}
        return list(map(_text, x)) if isinstance(x, list) else {"set": sorted(map(_text, x))}

    def _json_value(self, name: str, value: Any) -> Any:
        return _entries(name, value) if _is_vector(value) else _scalar(name, value)


KINDS: dict[str, ObservationKind] = {
    kind.name: kind for kind in (TextKind(), ColumnsKind(), VectorKind(), FeaturesKind(), IdKind())
}


class Kind(NamedTuple):
    """The kind of all observations of a corpus.

    Attributes
    ----------
    name : str
        One of `KINDS`.
    size : int
        The number of columns or of vector entries; 0 for kinds without a fixed size.
    """

    name: str
    size: int = 0

    def __str__(self) -> str:
        return self.ops.description.format(self.size)

    @property
    def ops(self) -> ObservationKind:
        """The operations on these observations."""
        return KINDS[self.name]

    @property
    def is_valid(self) -> bool:
        """Whether the name is known and the size is possible for it."""
        return self.name in list(KINDS) and ("{}" in self.ops.description) == (self.size > 0)


def kind_of(x: Observation) -> ObservationKind:
    """Return the kind of an observation; DataError if it is not one.

    >>> kind_of(("Lima", "NP")).name
    'columns'
    """
    if isinstance(x, list) and x and not isinstance(x[0], str):
        return KINDS["vector"]
    for kind in KINDS.values():
        if isinstance(x, kind.types) and not isinstance(x, bool):
            return kind
    raise DataError(
        f"{described(x)} is not an observation; give a string, a tuple of columns, a dict feature → value, "
        "a list or set of feature names, an integer id or a numeric vector"
    )


def same_observation(a: Observation, b: Observation) -> bool:
    """Whether two observations have the same type and are equal."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):  # whose values may be arrays
        return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
    return bool(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b)


def vector_lengths(x: Any) -> Iterable[tuple[str, int]]:
    """Return the names and lengths of the vectors within a dict of features.

    >>> list(vector_lengths({"word": "Lima", "of": {"shape": [3.0, 4.0]}}))
    [('of:shape', 2)]
    """
    if isinstance(x, dict) and not _CONTAINERS.isdisjoint(map(type, x.values())):
        for name, value in x.items():
            if _is_vector(value):
                yield name, len(value)
            elif isinstance(value, dict):
                yield from ((f"{name}:{inner}", length) for inner, length in vector_lengths(value))


def plain_features(x: Any, depth: int = 1) -> Any:
    """Return features in plain form.

    Parameters
    ----------
    x : dict, or iterable of str
        Features. As in CRFsuite's items, a value may be a list or set of strings, where
        {"a": ["x", "y"]} is {"a=x": True, "a=y": True}, or a dict, where {"a": {"b": 2}} is
        {"a:b": 2}. It may also be a vector, an array or a list of numbers: {"a": [3.0, 4.0]} is
        {"a:0": 3.0, "a:1": 4.0}.
    depth : int
        The number of dicts around x, itself included.

    Returns
    -------
    dict or list
        A dict feature → float, str or bool; or a list of names, sorted if x is a set.
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
        elif _is_vector(value):
            flat |= {f"{_name(name)}:{i}": v for i, v in enumerate(_entries(name, value))}
        elif type(value) in _CONTAINERS:
            flat |= {f"{_name(name)}={_name(inner)}": True for inner in value}
        else:
            flat[name] = value
    return flat


def _is_vector(value: Any) -> bool:
    """Whether the value of a feature is a vector: an array, or a list that begins with no name."""
    if isinstance(value, list):
        return bool(value) and not isinstance(value[0], str)
    return isinstance(value, np.ndarray)


def _entries(name: Any, value: Any) -> list[float]:
    """The numbers of a vector that is the value of a feature."""
    try:
        entries: list[float] = KINDS["vector"].plain(value).tolist()
    except DataError as error:
        raise DataError(f"feature {name!r}: {error}") from None
    return entries


def _name(name: Any) -> str:
    """A feature name, checked."""
    if not isinstance(name, str):
        raise DataError(f"{described(name)} is not a feature name; feature names are strings")
    return str(name)


def _value(value: Any, name: str) -> float | str | bool:
    """The value of a feature, checked, as a Python value."""
    if isinstance(value, str | np.bool_):
        return str(value) if isinstance(value, str) else bool(value)
    if not is_number(value):
        raise DataError(
            f"feature {name!r} has the value {described(value)}; give a finite number, a string or a boolean"
        )
    return float(value)


def to_stored(plain: Observation) -> str:
    """Return the line of JSON by which model files store an observation in plain form.

    >>> to_stored(("Lima", "NP")), from_stored('{"columns": ["Lima", "NP"]}')
    ('{"columns": ["Lima", "NP"]}', ('Lima', 'NP'))
    """
    return json.dumps(kind_of(plain).to_stored(plain), ensure_ascii=False)


def from_stored(line: str) -> Observation:
    """Return the observation of a line of a model file; `Corpus` checks whether it is valid."""
    try:
        stored = json.loads(line)
    except (ValueError, RecursionError):
        raise DataError("one of its observations is not readable") from None
    if not isinstance(stored, dict):
        return stored
    if "vector" in stored:
        return np.array(stored["vector"], dtype=np.float64)
    return tuple(stored["columns"]) if "columns" in stored else stored.get("features")


def to_json(x: Observation) -> Any:
    """Return the JSON value of an observation in JSON lines, which `from_json` reads back."""
    return kind_of(x).to_json(x)


def from_json(value: Any) -> Observation:
    """Return the observation of a JSON value of JSON lines; DataError if it is not one."""
    if isinstance(value, str) or is_whole(value):
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
            return {
                name: _vector(name, x) if isinstance(x, list) and x else _scalar(name, x)
                for name, x in inner.items()
            }
    raise DataError(f"the observation {short(value)} is not one of: {_JSON_FORMS}")


def _vector(name: str, values: list[Any]) -> np.ndarray:
    """The vector of JSON numbers that is the value of a feature."""
    if all(isinstance(value, str) for value in values):
        raise DataError(
            f"feature {short(name)} has the value {short(values)}; of arrays only those of numbers are "
            f"values in JSON lines, so give each string a feature: {short(f'{name}={values[0]}')}: true"
        )
    return _numbers(values)


def _numbers(values: list[Any]) -> np.ndarray:
    """A vector of JSON numbers."""
    if not all(map(is_number, values)):
        raise DataError(
            f"the array {short(values)} is neither of strings (features) nor of numbers within 64-bit floats "
            "(vector)"
        )
    return np.array(values, dtype=np.float64)


def _scalar(name: str, value: Any) -> str | bool | int | float:
    """The value of a feature, checked, as JSON has it."""
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, str | bool) and not is_number(value):
        raise DataError(
            f"feature {short(name)} has the value {short(value)}; give a finite number, a string or a boolean"
        )
    return value


def _text(value: Any) -> str:
    """A string, checked."""
    if not isinstance(value, str):
        raise DataError(f"{described(value)} where a string is expected; convert it to one")
    return str(value)
