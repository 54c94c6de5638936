"""Registry of rules: those shipped with wirelint and those in folders of the user, one in each file."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING

from wirelint import DOCUMENTATION
from wirelint.fix import NO_FIXES, SAFETIES, FixPolicy
from wirelint.guard import as_exception, guard
from wirelint.rule import SEVERITIES, Rule, Safety, read_example
from wirelint.rule import RuleError as RuleError
from wirelint.tables import hint

if TYPE_CHECKING:
    from wirelint.policy import Policies

_FILE = re.compile(r"[a-z]{2}\d{3}(_[a-z0-9]+)+\.py$")
_HEADINGS = ("What it does", "Why is this bad?", "Example", "False positives", "Fix safety")


def shipped(kind: str) -> Path:
    """Return the folder `rules`, `addons` or `captures` of this installation, which is a checkout or a wheel."""
    package = Path(__file__).resolve().parent
    bundled = package / "_shipped" / kind
    return bundled if bundled.is_dir() else package.parent / kind


@dataclass(frozen=True, slots=True)
class Registry:
    """Rules in the order of their codes. Codes and names are unique."""

    rules: tuple[Rule, ...]

    @classmethod
    def load(cls, folders: Iterable[Path] = (), *, outlines: bool = False) -> Registry:
        """Load the shipped rules and those of `folders`. Raises RuleError.

        `outlines`: the shipped rules have their manual and their constants only, and report nothing. Lists of rules need no
        more, and importing all rules takes 0.3 s.
        """
        taken: dict[str, Path] = {}
        own = (one for folder in folders for one in _load_folder(folder))
        loaded = (*_shipped_rules(outlines=outlines), *own)
        for rule, path in loaded:
            for key in (rule.code, rule.name):
                if key in taken:
                    raise RuleError(f"{path}: {key} is already taken by {taken[key]}; give the rule its own")
                taken[key] = path
        return cls(tuple(sorted((rule for rule, _ in loaded), key=lambda rule: rule.code)))

    def under(self, policies: Policies) -> Registry:
        """Return the registry to use where argument policies apply."""
        return Registry(tuple(rule.under(policies) for rule in self.rules)) if policies else self

    def select(self, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
        """Return rules by name, code, code prefix or `ALL`. Raises RuleError.

        The longer selector wins; on a tie, `ignore` does.
        """
        for selector in (*select, *ignore):
            self.find(selector)
        wanted = select or ("ALL",)
        return tuple(rule for rule in self.rules if rank(rule, wanted) > rank(rule, ignore))

    def permit(
        self,
        most: Safety | None,
        fixable: Sequence[str] = (),
        unfixable: Sequence[str] = (),
        clean_history: bool = True,
    ) -> FixPolicy:
        """Return the policy that permits fixes up to `most` for rules chosen as in `select`. Raises RuleError."""
        codes = frozenset(rule.code for rule in self.select(fixable, unfixable))
        return FixPolicy(most, codes.__contains__, clean_history=clean_history) if most is not None else NO_FIXES

    def find(self, selector: str) -> tuple[Rule, ...]:
        """Return the rules that a selector names. Raises RuleError, with similar names, if there is none."""
        rules = tuple(rule for rule in self.rules if _specificity(rule, selector) > 0)
        if not rules:
            raise self._unknown(selector)
        return rules

    def get(self, key: str) -> Rule:
        """Return the rule with this name or code. Raises RuleError."""
        for rule in self.rules:
            if key.lower() in (rule.name, rule.code.lower()):
                return rule
        raise self._unknown(key)

    def _unknown(self, key: str) -> RuleError:
        names = [known for rule in self.rules for known in (rule.name, rule.code)]
        return RuleError(f"unknown rule {key!r}; {hint(key, names, most=3, cutoff=0.5) or 'see `wirelint rules`'}")


def _specificity(rule: Rule, selector: str) -> int:
    """Return how specific a selector is for a rule: 0 no match, 1 `ALL`, then by length of the prefix, most for a name."""
    if selector == "ALL":
        return 1
    if selector.lower() == rule.name:
        return 1 + len(rule.code)
    return 1 + len(selector) if selector and rule.code.startswith(selector.upper()) else 0


def rank(rule: Rule, selectors: Iterable[str]) -> int:
    """Return the highest specificity that these selectors have for a rule; 0 if none matches."""
    return max((_specificity(rule, selector) for selector in selectors), default=0)


@cache
def _shipped_rules(*, outlines: bool) -> tuple[tuple[Rule, Path], ...]:
    """Return the shipped rules and their files, loaded once: a proxy reads its settings again whenever a file changes."""
    return tuple(_load_folder(shipped("rules"), outlines=outlines))


def _load_folder(folder: Path, *, outlines: bool = False) -> Iterable[tuple[Rule, Path]]:
    if not folder.is_dir():
        raise RuleError(f"{folder}: no such folder of rules; name a folder that holds <code>_<name>.py files")
    own = folder != shipped("rules")
    for path in sorted(folder.glob("*.py")):
        if path.name.startswith("_"):
            continue
        if not _FILE.match(path.name):
            raise RuleError(f"{path}: not a rule's file name; call it <code>_<name>.py, as in xx901_my_rule.py")
        yield _load_file(path, own=own) if own or not outlines else _outline(path), path


def _outline(path: Path) -> Rule:
    """Return a stand-in for the rule of a shipped file, made of the docstring and the strings of its class."""
    for node in ast.parse(path.read_bytes()).body:
        match node:
            case ast.ClassDef(bases=[ast.Name("Rule" | "RequestRule")]):
                members: dict[str, object] = {"__doc__": ast.get_docstring(node)}
                for statement in node.body:
                    match statement:
                        case ast.Assign([ast.Name(name)], ast.Constant(str(value))):
                            members[name] = value
                made: type[Rule] = type(node.name, (Rule,), members)
                _place(made, path)
                return made()
    raise RuleError(f"{path}: no rule in the file; define exactly one subclass of wirelint.rule.Rule")


def _load_file(path: Path, *, own: bool) -> Rule:
    """Load the rule of a file. `own`: the file is the user's, so its rule is guarded and its example read at once."""
    module = _import(path, own=own)
    classes = [
        item
        for _, item in inspect.getmembers(module, inspect.isclass)
        if issubclass(item, Rule) and item is not Rule and item.__module__ == module.__name__
    ]
    if len(classes) != 1:
        raise RuleError(f"{path}: {len(classes)} rules in one file; define exactly one subclass of wirelint.rule.Rule")
    rule = classes[0]
    _place(rule, path)
    for field in ("severity", "layer"):
        if not hasattr(rule, field):
            raise RuleError(f"{path}: {rule.__name__} has no `{field}`; every rule needs one")
    if rule.severity not in SEVERITIES:
        raise RuleError(f"{path}: severity {rule.severity!r}; write one of {', '.join(SEVERITIES)}")
    for heading in _HEADINGS:
        if f"## {heading}" not in (inspect.getdoc(rule) or ""):
            raise RuleError(f"{path}: the docstring lacks the heading `## {heading}`; it is the rule's manual")
    if own:
        read_example(rule.case_file)
        guard(rule)
    with _in_one_line(path):
        return rule()


class _SourceLoader(SourceFileLoader):
    """Loader without files of bytecode, which cannot tell two versions of one second and one size apart."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _import(path: Path, *, own: bool) -> ModuleType:
    name = f"wirelint_rules.{path.parent.name}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_SourceLoader(name, str(path)) if own else None)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _in_one_line(path):
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _in_one_line(path: Path) -> Iterator[None]:
    """Turn whatever a user's file raises into a RuleError of one line. Ctrl-C is raised again."""
    try:
        yield
    except BaseException as error:
        as_exception(error)
        import traceback

        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = getattr(error, "lineno", None) or (frames[-1].lineno if frames else None) or 1
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        told = f"{type(error).__name__}: {said}" if said else type(error).__name__
        raise RuleError(f"{path}:{line}: {told}; correct the rule or remove the file") from error


def _place(rule: type[Rule], path: Path) -> None:
    """Set the members of a rule that follow from the name of its file. Raises RuleError."""
    rule.case_file = path.with_suffix(".json")
    for field, value in (("code", path.stem[:5].upper()), ("name", path.stem[6:].replace("_", "-"))):
        if getattr(rule, field, value) != value:
            raise RuleError(f"{path}: {field} {getattr(rule, field)!r}; remove it: the file's name says {value!r}")
        setattr(rule, field, value)


def safeties(rule: Rule) -> tuple[Safety, ...]:
    """Return the safeties that the manual names under "Fix safety"; empty for a rule without fixes."""
    section = (inspect.getdoc(rule) or "").partition("## Fix safety")[2].partition("\n## ")[0].lower()
    return tuple(safety for safety in SAFETIES if re.search(rf"\b{safety}\b", section))


def summary(rule: Rule) -> str:
    """Return the first line of a rule's manual without its full stop."""
    return (inspect.getdoc(rule) or "").split("\n", 1)[0].rstrip(".")


def page_url(name: str) -> str:
    """Return the address of a rule's page in the documentation; empty for a rule that wirelint does not ship."""
    return f"{DOCUMENTATION}rules/{name}/" if name in shipped_names() else ""


@cache
def shipped_names() -> dict[str, str]:
    """Return the codes of the shipped rules by name, from the names of their files."""
    files = sorted(path.stem for path in shipped("rules").glob("[a-z]*.py"))
    return {stem[6:].replace("_", "-"): stem[:5].upper() for stem in files}
