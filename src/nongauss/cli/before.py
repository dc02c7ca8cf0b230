"""What is said before a fit: the table, its columns by what they are for, the target, the model, and why.

One block for the terminal, the same as plain data for --json. It is as long for 5,000 columns as for 50.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nongauss.cli.choose import REGRESSION, Choice
from nongauss.tables.column import TargetKind
from nongauss.tables.roles import ColumnRole
from nongauss.tables.words import typed

_WIDTH, _MARGIN = 100, 11
_MOST_NAMED, _MOST_ALIKE, _MOST_LEVELS = 8, 3, 10
_PLURAL = {
    "number": "numbers",
    "date": "dates",
    "label": "labels",
    "grade": "ordered labels",
    "id": "ids",
    "code": "codes",
    "text": "texts",
    "empty": "empty",
    "constant": "constant",
    "copy": "copies",
    "ignored": "as asked",
}


@dataclass(frozen=True)
class Before:
    """What is known of a table before the fit.

    `beside`: columns that are no inputs, by what they are for; `options`: what was asked for; `notes`: what
    to look at.
    """

    source: str
    n_rows: int
    n_dropped: int
    target: str
    understood: TargetKind
    roles: Sequence[ColumnRole]
    choice: Choice
    candidates: Sequence[Choice]
    beside: Mapping[str, str]
    asked: frozenset[str]
    notes: Sequence[str]

    def __str__(self) -> str:
        """The block as a person reads it."""
        rows = f"{self.n_rows:,} rows" + (
            f" ({self.n_dropped:,} more have no target)" if self.n_dropped else ""
        )
        n = len(self.roles)
        table = f"{self.source}: {rows}, {n:,} column{'s' * (n != 1)} beside the target"
        out = [_item("Table", table), _item("Target", self._on_target()), _item("Model", self._on_model())]
        for head, used in (("Inputs", True), ("Left out", False)):
            groups = self._groups(used)
            for number, (role, members) in enumerate(groups.items()):
                out.append(_item(head if number == 0 else "", f"{_named(role, members)}"))
        if self._groups(False):
            out.append(_item("", "--use NAME includes one of them, --ignore NAME leaves out another."))
        if self.beside:
            out.append(_item("Beside", ", ".join(f"{what}: {name}" for what, name in self.beside.items())))
        for number, note in enumerate(self.notes):
            out.append(_item("Look at" if number == 0 else "", note))
        return "\n".join(out)

    def summary(self) -> list[str]:
        """What the target was taken for and the model, a sentence each, for reports."""
        return [f"Target {self._on_target()}", in_prose(self.choice, "model" in self.asked)]

    def record(self) -> dict[str, Any]:
        """The block as plain data: every column has its role and the reason."""
        found = self.understood
        target = {"name": self.target, "kind": found.kind.value, "reason": found.reason}
        near = [{"kind": kind.value, "reason": reason} for kind, reason in found.near]
        columns = [
            {"name": role.name, "role": role.role, "used": role.used, "reason": role.reason}
            for role in self.roles
        ]
        return {
            "rows": self.n_rows,
            "rows_without_target": self.n_dropped,
            "target": target | {"near": near, "levels": list(found.levels)},
            "columns": columns,
            "beside": dict(self.beside),
            "candidates": [
                {"model": choice.model, "task": choice.task, "settings": dict(choice.settings)}
                for choice in self.candidates
            ],
        }

    def _groups(self, used: bool) -> dict[str, list[ColumnRole]]:
        """Columns by what they are for, in the order in which the kinds first come."""
        out: dict[str, list[ColumnRole]] = defaultdict(list)
        for role in self.roles:
            if role.used is used:
                out[role.role].append(role)
        return out

    def _on_target(self) -> str:
        """The target's kind with the reason, the order of its levels, what is near."""
        found = self.understood
        text = f"{self.target!r}: {found.kind.value}. {found.reason}"
        if found.levels:
            shown = " < ".join(found.levels[:_MOST_LEVELS]) + " < …" * (len(found.levels) > _MOST_LEVELS)
            text += f" Order: {shown}"
            text += (
                "."
                if not found.order
                else f" ({found.order}; --levels {typed(','.join(found.levels[:2]))},… to change it)."
            )
        near = [kind.value for kind, _ in found.near]
        if near and not found.declared:
            text += f" It could also be {' or '.join(near)}: --kind WORD overrides this."
        elif not found.declared:
            text += " --kind WORD overrides this."
        return text

    def _on_model(self) -> str:
        """The model, and the options that choose another."""
        text = in_words(self.choice)
        if self.choice.model == "auto":
            by = " or --set likelihood=NAME" if self.choice.task == REGRESSION else ""
            return f"{text}; --model NAME{by} chooses a single model."
        if self.choice.why_single:
            text += f", a single model because {self.choice.why_single}"
        open_ = [
            option
            for option, what in (
                ("--model NAME", "model"),
                ("--task NAME", "task"),
                ("--set likelihood=NAME", "likelihood"),
            )
            if what not in self.asked and (what != "likelihood" or "likelihood" in self.choice.settings)
        ]
        others = [in_words(choice) for choice in self.candidates if choice != self.choice]
        if others and open_:
            text += f" (or {'; '.join(others)})"
        return f"{text}. {' or '.join(open_)} overrides this." if open_ else f"{text}, as asked."


TOLD = ("kind", "ordered")
"""Settings of the choice by evidence that the sentence on the target says."""


def in_words(choice: Choice) -> str:
    """A choice as a reader sees it."""
    what = {"ordinal": "for grades", "classification": "for labels"}.get(choice.task, "for numbers")
    settings = ", ".join(
        f"{name}={value}"
        for name, value in choice.settings.items()
        if choice.model != "auto" or name not in TOLD
    )
    if choice.model == "auto":
        return f"every model that suits {what[4:]}, chosen by evidence" + (
            f", with {settings}" if settings else ""
        )
    return f"{choice.model} {what}" + (f" with {settings}" if settings else "")


_FAMILIES = {
    "tggm": "a truncated-Gaussian graphical model",
    "sparse_gp": "a sparse Gaussian process",
    "rank_factor": "a model of rank factors",
    "harmonium": "a harmonium",
}


def in_prose(choice: Choice, asked: bool) -> str:
    """A choice of model as a sentence for a reader of the report, without options of the command line."""
    what = {"ordinal": "grades", "classification": "labels"}.get(choice.task, "numbers")
    settings = dict(choice.settings)
    likelihood = settings.pop("likelihood", "")
    law = f" with the {likelihood.replace('_', ' ')} likelihood" if likelihood else ""
    if choice.model == "auto":
        settings = {k: v for k, v in settings.items() if k not in TOLD}
    others = "; settings: " + ", ".join(f"{k} {v}" for k, v in settings.items()) if settings else ""
    if choice.model == "auto":
        return f"Every model that suits {what} was tried{law}, and the best chosen by evidence{others}."
    why = ", as asked" if asked or choice.why_single else ""
    return f"One model was fitted{why}: {_FAMILIES.get(choice.model, choice.model)} for {what}{law}{others}."


def grouped_notes(roles: Sequence[ColumnRole]) -> list[str]:
    """The warnings of the columns, of each sort the first few and how many more there are."""
    by_sort: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for role in roles:
        for sort, sentence in role.warnings:
            by_sort[sort].append((role.name, sentence))
    out = []
    for warned in by_sort.values():
        out += [sentence for _, sentence in warned[:_MOST_ALIKE]]
        rest = [name for name, _ in warned[_MOST_ALIKE:]]
        if rest:
            out.append(f"The same goes for {_names(rest)}.")
    return out


def left_out_notes(roles: Sequence[ColumnRole]) -> list[str]:
    """A sentence on each kind of column that was left out, for reports and --json."""
    by_role: dict[str, list[ColumnRole]] = defaultdict(list)
    for role in roles:
        if not role.used:
            by_role[role.role].append(role)
    return [f"Left out: {_named(kind, members)}." for kind, members in by_role.items()]


def _named(kind: str, members: Sequence[ColumnRole]) -> str:
    """ "3 numbers: a, b, c", with the reason of each where it says something and they are few."""
    if kind == "number" or len(members) > _MOST_NAMED:
        shown = _names([role.name for role in members])
    else:
        shown = ", ".join(f"{role.name} ({role.reason})" if role.reason else role.name for role in members)
    word = _PLURAL[kind] if len(members) > 1 else kind
    return f"{len(members):,} {word}: {shown}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _item(head: str, text: str) -> str:
    """A line of the block: its head, and the text beside, wrapped."""
    lines = textwrap.wrap(text, _WIDTH - _MARGIN, break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * _MARGIN).join([head.ljust(_MARGIN) + (lines[0] if lines else ""), *lines[1:]])
