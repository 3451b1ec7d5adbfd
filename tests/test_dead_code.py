"""A public name of the product that the product never reads is dead code, also when tests read it.

Read from the syntax trees alone: what a module defines at its top, and what other code of the
product and of the benchmarks reads of it, followed through imports to where it is defined. What a
name reads of itself does not count, nor does an import that is never read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.test_shape import CLIENT, ROOMS, ROOT, modules

# Generated for users of the client; they are its callers.
GENERATED = {f"tallystick_client.{name}" for name in ("async_client", "client", "forms")}
ROOTS = {*ROOMS, CLIENT, "benchmarks"}
# A decorator that is an attribute or a call hands the function on: a route, a command, a test.
# These do not: whoever is decorated so still needs a reader.
PLAIN_DECORATORS = {
    "cache",
    "functools.cache",
    "lru_cache",
    "dataclass",
    "dataclasses.dataclass",
    "contextmanager",
    "asynccontextmanager",
    "contextlib.contextmanager",
    "final",
    "total_ordering",
    "runtime_checkable",
}
# Every file of the domain that has them is merged by `domain/rules.py`, which reads them by name.
SEAMS = {
    "STREAMS",
    "DECIDERS",
    "REFUSES",
    "BOOKS",
    "FILES",
    "FACTS",
    "RESOURCES",
    "TIMERS",
    "COMMANDS",
    "REASONS",
    "STORED",
}
# The rule in words of the domain; views say it in SQL, and a test holds the two together.
REFERENCES = {"domain.trust.evidence", "domain.trust.related"}
CHOSEN = {
    "cli.serve.application": "named to uvicorn as text",
    "contracts.payout_tree.conform": "the conformance runner loads it by name",
    "ledger.log.chain.conform": "the conformance runner loads it by name",
    "domain.epochs.clients.clients_file": "of a settlement as a whole; tests hold lanes to it",
    "domain.lease.close_codes.PARTIES": "every party; a test holds the table of codes to it",
    "domain.leasing.demands.ELSEWHERE": "says where the other demands are; a test holds it whole",
    "domain.leasing.due.due_us": "the formula that views say in SQL; a test compares them",
    "domain.prices.tariff.PRESETS": "published regimes, each of which can be replayed",
    "domain.trust.reputation_terms.check_terms": "for terms that governance changes, to come",
    "projections.epochs.counted.read_tokens": "of all nodes at once; tests read what counts",
    "projections.epochs.epochs.read_burns": "for the recount of burns, to come",
    "projections.trust.scores.read_standings": "reads and judges in one; tests compare scores",
}
"""Public names that no code of the product reads; each is kept for its reason."""


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def trees() -> dict[str, ast.Module]:
    """The modules of the product and of the benchmarks, by name."""
    measured = (
        (path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted((ROOT / "benchmarks").rglob("*.py"))
    )
    return {module_name(path): tree for path, tree in (*modules(), *measured)}


def hands_on(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(named) not in PLAIN_DECORATORS


def named_by(statement: ast.stmt) -> Iterator[str]:
    """The public names that a statement at the top of a module defines and leaves to readers."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if not any(hands_on(one) for one in statement.decorator_list):
            yield statement.name
    elif isinstance(statement, ast.Assign):
        yield from (one.id for one in statement.targets if isinstance(one, ast.Name))
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id


def top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements at the top of a module, also those under `if` and `try`."""
    for statement in body:
        if isinstance(statement, ast.If | ast.Try):
            yield from top(statement.body)
            yield from top(statement.orelse)
        else:
            yield statement


def imported(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for: `module` or `module.name`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    found[alias.asname] = alias.name
                else:
                    found[alias.name.split(".")[0]] = alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return {name: meant for name, meant in found.items() if meant.split(".")[0] in ROOTS}


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` of an attribute of an attribute of a name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None


def read_in(node: ast.AST) -> Iterator[str]:
    """The names and the chains of attributes that a piece of code reads."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        chain = dotted(one) if isinstance(one, ast.Name | ast.Attribute) else None
        if chain is None:
            waiting.extend(ast.iter_child_nodes(one))
        elif not (isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)):
            yield chain


@cache
def unread() -> tuple[str, ...]:
    """The public names that no other code of the product or the benchmarks reads."""
    product = trees()
    names = {name: imported(tree) for name, tree in product.items()}
    read: set[str] = set()

    def meant(whole: str, deep: int = 0) -> None:
        """Counts a reading, and follows it to where the name is defined."""
        read.add(whole)
        holder, _, last = whole.rpartition(".")
        if holder in product:
            further = names[holder].get(last)
            if further is not None and further != whole and deep < 9:
                meant(further, deep + 1)
        elif holder:
            meant(holder, deep)

    for name, tree in product.items():
        known = names[name]
        for statement in top(tree.body):
            own = set(named_by(statement))
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                own.add(statement.name)
            for chain in set(read_in(statement)):
                first, _, rest = chain.partition(".")
                if first in known:
                    meant(f"{known[first]}.{rest}" if rest else known[first])
                elif first not in own:
                    read.add(f"{name}.{first}")
    found = (
        f"{name}.{one}"
        for name, tree in product.items()
        if name not in GENERATED | REFERENCES and not name.startswith("benchmarks.")
        for statement in top(tree.body)
        for one in named_by(statement)
        if not one.startswith("_") and one not in SEAMS and f"{name}.{one}" not in read
    )
    return tuple(sorted(found))


def test_a_public_name_is_read_by_the_product_or_chosen_with_a_reason() -> None:
    """Delete it, or move it to `tests/` where it is a reference that tests compare with."""
    dead = [one for one in unread() if one not in CHOSEN]
    assert dead == [], dead


def test_what_was_chosen_is_still_there_and_still_unread() -> None:
    """A reason that outlived its name, or a name that found its reader, leaves the list."""
    assert sorted(CHOSEN) == [one for one in unread() if one in CHOSEN]
