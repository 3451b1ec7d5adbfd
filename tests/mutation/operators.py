"""One small change at a time: where a module can be changed, and what it is then.

A mutant is known by its module, function, source line, operator and change, and by which of the
places of that name it is: where a line moves, the mutant keeps its name.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

BIGGER_THAN = 100
"""From here on a constant is also tried at a tenth: a bound that no test has come near."""
TEXT_MAX = 90
BOUNDARY: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
UNORDERED = {"min", "max", "isinstance", "getattr", "range", "zip"}
"""Two arguments of these are not swapped: it changes nothing, or is an error at once."""
Change = tuple[ast.AST, str, ast.AST]
"""The node, the operator, and what stands there instead."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """`number`: of the place among those of its module. `lines`: of its statement, as far as the
    body of that; `around`: of its function. `is_body`: inside one, so that a new body is all it
    takes.
    """

    module: str
    function: str
    source: str
    operator: str
    change: str
    which: int
    number: int
    line: int
    lines: tuple[int, int]
    around: tuple[int, int]
    is_body: bool

    @property
    def name(self) -> tuple[str, str, str, str, str]:
        return self.module, self.function, self.source, self.operator, self.change

    @property
    def key(self) -> str:
        return " | ".join((*self.name, str(self.which)))


def path_of(root: Path, module: str) -> Path:
    return root.joinpath(*module.split(".")).with_suffix(".py")


@cache
def mutants_of(root: Path, module: str) -> tuple[Mutant, ...]:
    """All mutants of a module, in the order of its syntax tree."""
    text = path_of(root, module).read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    above = _parents(tree)
    seen: Counter[tuple[str, ...]] = Counter()
    found = []
    for number, (old, operator, new) in enumerate(_changes(tree)):
        path = [old, *_path(old, above)]
        statement = next(node for node in path if isinstance(node, ast.stmt))
        line = getattr(old, "lineno", statement.lineno)
        one = Mutant(
            module,
            _function(path),
            lines[line - 1].strip(),
            operator,
            f"{_text(old)} -> {_text(new)}",
            0,
            number,
            line,
            (statement.lineno, _head_end(statement)),
            _around(path),
            _is_body(path),
        )
        seen[one.name] += 1
        found.append(replace(one, which=seen[one.name]))
    return tuple(found)


def mutated(root: Path, mutant: Mutant) -> ast.Module:
    """The module with this one change. Lines stay where they are."""
    tree = ast.parse(path_of(root, mutant.module).read_text(encoding="utf-8"))
    above = _parents(tree)
    old, _, new = next(one for at, one in enumerate(_changes(tree)) if at == mutant.number)
    parent = above[id(old)]
    for field, value in ast.iter_fields(parent):
        if value is old:
            setattr(parent, field, new)
        elif isinstance(value, list):
            setattr(parent, field, [new if one is old else one for one in value])
    ast.copy_location(new, statement_of(old, above) if not hasattr(old, "lineno") else old)
    return ast.fix_missing_locations(tree)


def statement_of(node: ast.AST, above: dict[int, ast.AST]) -> ast.AST:
    return next(one for one in (node, *_path(node, above)) if isinstance(one, ast.stmt))


def _parents(tree: ast.AST) -> dict[int, ast.AST]:
    return {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def _path(node: ast.AST, above: dict[int, ast.AST]) -> Iterator[ast.AST]:
    while id(node) in above:
        node = above[id(node)]
        yield node


def _function(path: list[ast.AST]) -> str:
    names = [
        one.name
        for one in path[1:]
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    return ".".join(reversed(names))


def _is_body(path: list[ast.AST]) -> bool:
    for inner, outer in pairwise(path):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef) and inner in outer.body:
            return True
        if isinstance(outer, ast.Lambda) and inner is outer.body:
            return True
    return False


def _around(path: list[ast.AST]) -> tuple[int, int]:
    """The lines of the outermost function, or of the module."""
    functions = [one for one in path if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    if not functions:
        return 1, 1
    return functions[-1].body[0].lineno, functions[-1].end_lineno or functions[-1].lineno


def _head_end(statement: ast.stmt) -> int:
    """The last line of a statement before its body begins."""
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if not body:
        return statement.end_lineno or statement.lineno
    first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
    return max(statement.lineno, first.lineno - 1)


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 3] + "..."


# What is left alone, and what is tried.


def _left_alone(tree: ast.AST) -> set[int]:
    """Types, decorators, assertions, documents and texts: no test should notice these."""
    out: set[int] = set()
    for node in ast.walk(tree):
        alone: list[ast.AST | None] = []
        match node:
            case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
                alone = [node]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                alone = [*node.decorator_list, node.returns]
            case ast.ClassDef():
                alone = list(node.decorator_list)
            case ast.arg() | ast.AnnAssign():
                alone = [node.annotation]
            case ast.Expr(value=ast.Constant()):
                alone = [node]
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                alone = [node]
            case ast.keyword(arg="strict"):
                alone = [node]
            case ast.Subscript(value=ast.Name(id="tuple" | "dict" | "list" | "type" | "Callable")):
                alone = [node]
        out.update(id(one) for each in alone if each is not None for one in ast.walk(each))
    return out


def _changes(tree: ast.AST) -> Iterator[Change]:
    alone = _left_alone(tree)
    for node in ast.walk(tree):
        if id(node) not in alone:
            yield from _of_expression(node)
            yield from _of_statement(node)


def _of_expression(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare():
            yield from _compared(node)
        case ast.BinOp() | ast.UnaryOp() | ast.Constant():
            yield from _calculated(node)
        case ast.BoolOp(op=op, values=values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield node, "and or", ast.BoolOp(other, values)
            for at in range(len(values)):
                rest = values[:at] + values[at + 1 :]
                yield node, "clause", rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.IfExp(body=body, orelse=orelse):
            yield node, "condition", body
            yield node, "condition", orelse
        case ast.comprehension(target=target, iter=over, ifs=[_, *rest], is_async=is_async):
            yield node, "filter", ast.comprehension(target, over, rest, is_async)
        case ast.Call():
            yield from _called(node)


def _compared(node: ast.Compare) -> Iterator[Change]:
    for name, table in (("boundary", BOUNDARY), ("negated", NEGATED)):
        for at, op in enumerate(node.ops):
            if type(op) in table:
                ops = [*node.ops[:at], table[type(op)](), *node.ops[at + 1 :]]
                yield node, name, ast.Compare(node.left, ops, node.comparators)


def _calculated(node: ast.BinOp | ast.UnaryOp | ast.Constant) -> Iterator[Change]:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield node, "arithmetic", ast.BinOp(left, ast.Sub(), right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            yield node, "arithmetic", ast.BinOp(left, ast.Add(), right)
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            up = ast.BinOp(ast.UnaryOp(ast.USub(), left), ast.FloorDiv(), right)
            yield node, "rounding", ast.UnaryOp(ast.USub(), up)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Mod()):
            yield node, "arithmetic", left
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield node, "sign", operand
        case ast.Constant(value=bool(value)):
            yield node, "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield node, "constant", ast.Constant(value + 1)
            if value >= BIGGER_THAN:
                yield node, "constant", ast.Constant(value // 10)


def _called(node: ast.Call) -> Iterator[Change]:
    called, args = node.func, node.args
    name = called.id if isinstance(called, ast.Name) else ""
    if name in ("min", "max"):
        other = ast.Name("max" if name == "min" else "min", ast.Load())
        yield node, "min max", ast.Call(other, args, node.keywords)
    is_plain = len(args) >= 2 and not any(isinstance(one, ast.Starred) for one in args[:2])
    if is_plain and name not in UNORDERED and ast.dump(args[0]) != ast.dump(args[1]):
        yield node, "swapped", ast.Call(called, [args[1], args[0], *args[2:]], node.keywords)
    named = node.keywords
    if len(named) >= 2 and all(one.arg for one in named[:2]) and name not in ("Refused", "field"):
        swapped = [
            ast.keyword(named[0].arg, named[1].value),
            ast.keyword(named[1].arg, named[0].value),
        ]
        if ast.dump(named[0].value) != ast.dump(named[1].value):
            yield node, "swapped", ast.Call(called, args, [*swapped, *named[2:]])


def _of_statement(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.If(test=test):
            yield test, "branch", ast.Constant(True)
            yield test, "branch", ast.Constant(False)
            for one in (*node.body, *node.orelse):
                if isinstance(one, ast.Return):
                    yield one, "removed", ast.Pass()
        case ast.match_case(pattern=pattern, guard=ast.expr(), body=body):
            yield node, "guard", ast.match_case(pattern, None, body)
        case ast.AugAssign(target=target, op=ast.Add() | ast.Sub() as op, value=value):
            other = ast.Sub() if isinstance(op, ast.Add) else ast.Add()
            yield node, "arithmetic", ast.AugAssign(target, other, value)
            yield node, "removed", ast.Pass()
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.Continue() | ast.Break():
            yield node, "removed", ast.Pass()
