"""Signals of genes in bases: loci, counts of words and sites in them, features from counts.

Counts of loci add up, so that the features of a locus can be computed from the other loci alone:
the features of training loci then are as reliable as those of new loci, and so are weights that
are learned on them.

A base t has these features (`COLUMNS`), all others are 0:

=========  ========================================================================================
base       0.01 at every base
frame 0–2  log P(x_t | x_{t−5} … x_{t−1}) as the first, second or third base of a codon, less that
           outside of exons
repeat     how much of its surroundings is in words of 14 bases that other loci have twice outside
           of exons, on either strand, from 0 to 1
gc         the share of C and G in 500 bases around it, less 0.45, times 5
GT, GC     1 where an intron may begin
donor      there, the log-odds of the bases around it, as a site against other GT
AG         1 where an intron may end
acceptor   there, the log-odds of the bases around it
ATG        1 where a gene may begin
start      there, the log-odds of the bases around it
stop       1 at the last base of TAA, TAG and TGA
=========  ========================================================================================

Letters other than A, C, G and T are read as A.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fuda.errors import DataError
from fuda.reproduce.corpora import find

Array = np.ndarray
COLUMNS = (
    *("base", "frame 0", "frame 1", "frame 2", "repeat", "gc"),
    *("GT", "GC", "donor", "AG", "acceptor", "ATG", "start", "stop"),
)
_FILE = "loci.tar.gz"
_STOPS = ("TAA", "TAG", "TGA")
_WORD = 14  # the length of words that repeats are found by
# A base is in a repeat if enough words that end up to this many bases from it are repeated; with
# at least `_FULL` such words, the feature is 1.
_AROUND = 20
_FULL = 15
_GC_AROUND = 250
# The weight, in bases, of the model with one base of context less, for 0 to 5 bases of context.
_BACKED_OFF = (20.0, 20.0, 20.0, 50.0, 500.0, 2000.0)
_SITE_BACKED_OFF = 50.0
# Offsets around the first base of an intron, its last base, and the first base of a gene; and the
# offsets at which all sites have the same bases, which are not informative.
_WINDOWS = {"donor": (-4, 8), "acceptor": (-24, 4), "start": (-12, 6)}
_SHARED = {"donor": (0, 1), "acceptor": (-1, 0), "start": (0, 1, 2)}


class Locus(NamedTuple):
    """A stretch of DNA with one gene.

    Attributes
    ----------
    name : str
    bases : (n,) array of int
        0 to 3 for A, C, G and T.
    exons : list of (start, end)
        What is translated, as Python slices.
    """

    name: str
    bases: Array
    exons: list[tuple[int, int]]


def load(data: str | Path) -> list[Locus]:
    """Read the loci.

    Parameters
    ----------
    data : str or Path
        The folder, or one above it, with loci.tar.gz. Its files have a header, exons as
        ``join(1..9,21..32)``, and bases.

    Returns
    -------
    list of Locus
        Ordered by name.
    """
    path = find(data, "gene_mouse", _FILE)
    try:
        with tarfile.open(path) as archive:
            files = {Path(m.name).stem: archive.extractfile(m) for m in archive if m.isfile()}
            texts = {name: file.read().decode("ascii") for name, file in files.items() if file}
    except (tarfile.TarError, EOFError, UnicodeDecodeError):
        raise DataError(f"{path}: is not an archive of loci; fetch it again") from None
    return [_locus(name, texts[name], path) for name in sorted(texts)]


def _locus(name: str, text: str, path: Path) -> Locus:
    """The locus of a file's text."""
    header, exons, *lines = [*text.split("\n"), ""]
    bases = encoded("".join(lines))
    slices = [(int(a) - 1, int(b)) for a, b in re.findall(r"(\d+)\.\.(\d+)", exons)]
    bounds = [0, *(bound for exon in slices for bound in exon), len(bases)]
    if not header.startswith(">") or not slices or bounds != sorted(bounds):
        raise DataError(
            f"{path}: {name} is not a header, join(a..b,…) within the locus, and bases; correct it"
        )
    return Locus(name, bases, slices)


def encoded(text: str) -> Array:
    """Return the numbers of bases.

    >>> encoded("ACGTn").tolist()
    [0, 1, 2, 3, 0]
    """
    numbers = np.zeros(256, dtype=np.int64)
    for k, letter in enumerate("ACGT"):
        numbers[[ord(letter), ord(letter.lower())]] = k
    return numbers[np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8)]


def words(bases: Array, length: int) -> Array:
    """Return the number of the word that ends at each base; before the first base there is A.

    >>> words(encoded("ACGT"), 2).tolist()
    [0, 1, 6, 11]
    """
    padded = np.concatenate([np.zeros(length - 1, dtype=np.int64), bases])
    numbers = np.zeros(len(bases), dtype=np.int64)
    for k in range(length):
        numbers = numbers * 4 + padded[k : k + len(bases)]
    return numbers


def ends_of(bases: Array, texts: Iterable[str]) -> Array:
    """Return the bases at which one of some texts of equal length ends."""
    texts = list(texts)
    numbers = [words(encoded(text), len(text))[-1] for text in texts]
    at = np.flatnonzero(np.isin(words(bases, len(texts[0])), numbers))
    return at[at >= len(texts[0]) - 1]


def signals(bases: Array) -> dict[str, Array]:
    """Return where introns and genes may begin and end: the columns GT, GC, AG, ATG and stop."""
    return {
        "GT": ends_of(bases, ["GT"]) - 1,
        "GC": ends_of(bases, ["GC"]) - 1,
        "AG": ends_of(bases, ["AG"]),
        "ATG": ends_of(bases, ["ATG"]) - 2,
        "stop": ends_of(bases, _STOPS),
    }


class Counts(NamedTuple):
    """Counts of words and sites in loci; counts of several loci add up.

    Attributes
    ----------
    coding : (3, 4096) array
        Words of six bases by the position of their last base in a codon.
    other : (4096,) array
        Those whose last base is not in an exon.
    sites : dict
        For donor, acceptor and start, counts (2, offsets, 16) of pairs of neighbouring bases
        around true and around other sites.
    """

    coding: Array
    other: Array
    sites: dict[str, Array]

    def plus(self, other: Counts, sign: int = 1) -> Counts:
        """Return the sum with other counts, or the difference."""
        sites = {name: self.sites[name] + sign * other.sites[name] for name in self.sites}
        return Counts(self.coding + sign * other.coding, self.other + sign * other.other, sites)


def positions(locus: Locus) -> Array:
    """Return the position in its codon of each base of an exon, −1 of all others."""
    in_codon = np.full(len(locus.bases), -1)
    passed = 0
    for start, end in locus.exons:
        in_codon[start:end] = (passed + np.arange(end - start)) % 3
        passed += end - start
    return in_codon


def counts(locus: Locus) -> Counts:
    """Count the words and sites of a locus."""
    place, hexamers, at = positions(locus), words(locus.bases, 6), signals(locus.bases)
    starts, ends = zip(*locus.exons, strict=True)
    true = {"donor": ends[:-1], "acceptor": [a - 1 for a in starts[1:]], "start": starts[:1]}
    sites = {}
    for name, signal in (("donor", "GT"), ("acceptor", "AG"), ("start", "ATG")):
        pairs, is_true = _pairs(locus.bases, at[signal], name), np.isin(at[signal], true[name])
        sites[name] = np.stack([_by_offset(pairs[is_true]), _by_offset(pairs[~is_true])])
    coding = [np.bincount(hexamers[place == k], minlength=4096) for k in range(3)]
    return Counts(np.stack(coding), np.bincount(hexamers[place < 0], minlength=4096), sites)


def _pairs(bases: Array, at: Array, site: str) -> Array:
    """Pairs of neighbouring bases (n, offsets) around sites, by their second base."""
    low, high = _WINDOWS[site]
    padded = np.pad(words(bases, 2), (-low, high))
    return padded[at[:, None] + np.arange(high - low)]


def _by_offset(pairs: Array) -> Array:
    """Counts (offsets, 16) of pairs."""
    return np.stack([np.bincount(column, minlength=16) for column in pairs.T])


def repeated_words(loci: Iterable[Locus]) -> tuple[Array, Array]:
    """Return the words outside of exons, on both strands, in ascending order, and their counts."""
    all_words = []
    for locus in loci:
        outside = np.ones(len(locus.bases), dtype=bool)
        outside[: _WORD - 1] = False
        for start, end in locus.exons:
            outside[start : end + _WORD - 1] = False
        forward = words(locus.bases, _WORD)[outside]
        backward, rest = np.zeros_like(forward), forward.copy()
        for _ in range(_WORD):  # the word of the other strand: complements, backwards
            backward, rest = backward * 4 + 3 - rest % 4, rest // 4
        all_words += [forward, backward]
    return np.unique(np.concatenate(all_words), return_counts=True)


class Signals:
    """Features of bases, computed from counts.

    Parameters
    ----------
    counted : Counts
        Counts of loci.
    """

    def __init__(self, counted: Counts) -> None:
        other = _log_markov(counted.other)
        self._frames = np.stack([_log_markov(part) - other for part in counted.coding])
        self._sites = {name: _log_odds(both, name) for name, both in counted.sites.items()}

    def features(self, bases: Array, repeated: tuple[Array, Array], of_locus: tuple[Array, Array]) -> Array:
        """Return the features of bases.

        Parameters
        ----------
        bases : (n,) array of int
            The bases of a locus.
        repeated, of_locus : (words, counts)
            The words of all loci, and those of this locus, which are not counted.

        Returns
        -------
        (n, columns) array
            By `COLUMNS`.
        """
        features = np.zeros((len(bases), len(COLUMNS)))
        column = {name: features[:, k] for k, name in enumerate(COLUMNS)}
        column["base"][:] = 0.01
        for k in range(3):
            column[f"frame {k}"][5:] = self._frames[k, words(bases, 6)[5:]]
        column["repeat"][:] = _repeats(bases, repeated, of_locus)
        is_gc = (bases == 1) | (bases == 2)
        column["gc"][:] = 5 * (_around(is_gc, _GC_AROUND) / _around(np.ones(len(bases)), _GC_AROUND) - 0.45)
        at = signals(bases)
        for name, places in at.items():
            column[name][places] = 1.0
        for site, names in (("donor", ("GT", "GC")), ("acceptor", ("AG",)), ("start", ("ATG",))):
            places = np.concatenate([at[name] for name in names])
            table = self._sites[site]
            column[site][places] = table[np.arange(len(table)), _pairs(bases, places, site)].sum(axis=1)
        return features


def _log_markov(counted: Array) -> Array:
    """log P(x | five bases before) of words of six, each length backed off to the next shorter."""
    table = counted.reshape((4,) * 6).astype(float)
    p = np.full((1,) * 5 + (4,), 0.25)
    for length, amount in enumerate(_BACKED_OFF):
        seen = table.sum(axis=tuple(range(5 - length)), keepdims=True)
        p = (seen + amount * p) / (seen.sum(axis=-1, keepdims=True) + amount)
    return np.log(p).reshape(-1)


def _log_odds(both: Array, site: str) -> Array:
    """Log-odds (offsets, 16) of a base given the one before, around true sites against others."""

    def log_p(pairs: Array) -> Array:
        table = pairs.reshape(-1, 4, 4).astype(float)
        alone = table.sum(axis=1, keepdims=True) + 1
        alone /= alone.sum(axis=2, keepdims=True)
        return np.log(
            (table + _SITE_BACKED_OFF * alone) / (table.sum(axis=2, keepdims=True) + _SITE_BACKED_OFF)
        )

    odds = (log_p(both[0]) - log_p(both[1])).reshape(-1, 16)
    odds[np.array(_SHARED[site]) - _WINDOWS[site][0]] = 0.0
    return odds


def _repeats(bases: Array, repeated: tuple[Array, Array], of_locus: tuple[Array, Array]) -> Array:
    """The column repeat."""
    (known, counts_of_words), numbers = repeated, words(bases, _WORD)
    counts_of_words = counts_of_words.copy()
    counts_of_words[np.searchsorted(known, of_locus[0])] -= of_locus[1]
    place = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    seen = (known[place] == numbers) & (counts_of_words[place] >= 2)
    seen[: _WORD - 1] = False
    return np.minimum(_around(seen, _AROUND, _AROUND + _WORD - 1) / _FULL, 1.0)


def _around(values: Array, before: int, after: int | None = None) -> Array:
    """The sum of values from so many bases before each base to so many after it."""
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=float)])
    here = np.arange(len(values))
    last = np.minimum(here + (before if after is None else after), len(values))
    return sums[last] - sums[np.maximum(here - before, 0)]
