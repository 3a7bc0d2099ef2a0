"""The report of a race between candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fuda.selection.tables import PrintedTable, Tabular


@dataclass(frozen=True)
class SearchReport(Tabular):
    """The candidates of a search with their scores and times, and the choice.

    Parameters
    ----------
    goal : str
        The score that was maximized.
    rows : list of dict
        Of each candidate the name, score and spread over folds in per cent, the numbers of folds
        and of nodes fitted on, seconds by the clock and of processors, and how it ended.
    chosen : str
        The chosen candidates.
    seconds, cpu_seconds : float
        The time of the whole search.

    Examples
    --------
    >>> from fuda import CRF, HMM, Auto
    >>> X, y = [["a", "b"], ["b"], ["b", "a"]] * 4, [["A", "B"], ["B"], ["B", "A"]] * 4
    >>> report = Auto(candidates={"crf": CRF(), "hmm": HMM()}).fit(X, y).report_
    >>> report.goal, sorted(row["name"] for row in report.rows)
    ('token accuracy', ['crf', 'hmm'])
    """

    goal: str
    rows: list[dict[str, Any]]
    chosen: str
    seconds: float
    cpu_seconds: float

    def table(self) -> PrintedTable:
        """Return the table.

        Returns
        -------
        PrintedTable
            A row per candidate.
        """
        header = ["candidate", self.goal, "folds", "nodes", "seconds", "CPU", "end"]
        rows = []
        for row in self.rows:
            score = "–" if row["score"] is None else f"{row['score']:.1f}±{row['spread']:.1f}"
            counts = [str(row["folds"]), f"{row['nodes']:,}"]
            rows.append([row["name"], score, *counts, f"{row['wall']:.1f}", f"{row['cpu']:.1f}", row["end"]])
        total = f"{self.seconds:.1f} s ({self.cpu_seconds:.1f} s of processors)"
        return PrintedTable(header, rows, (f"chosen: {self.chosen}; {total}",))
