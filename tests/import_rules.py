"""The rules that tests/test_imports.py holds the packages to, read from ARCHITECTURE.md's module tables.

The tables are the rules: a library that the column "may import" does not name is refused, at any depth of nesting for
an import written in the module itself, and through the project's own modules for torch and Ray.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("trainables", "orchestrator")
HEAVY = frozenset({"torch", "ray"})

# Distribution, or a library that comes with another, → the name in the tables.
TABLE_NAMES = {
    "pynvml": "nvidia-ml-py",
    "yaml": "PyYAML",
    "sklearn": "scikit-learn",
    "PIL": "pillow",
    "torchvision": "torch",
}
WITH_TORCH = frozenset({"numpy", "pillow"})
"""What a table that names torch need not name as well."""

AT_IMPORT = ("print", "open", "input", "exec", "eval")
AT_IMPORT_PREFIXES = (
    "os.environ",
    "os.getenv",
    "logging.basicConfig",
    "torch.cuda",
    "torch.accelerator",
    "torch.set_",
    "torch.manual_seed",
    "torch.backends",
    "ray.init",
    "subprocess",
    "time",
    "Path.cwd",
    "Path.home",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One module, as the rules see it. Imports are full module names, of what runs: not those under TYPE_CHECKING."""

    at_top: frozenset[str]
    anywhere: frozenset[str]
    tree: ast.Module
    lines: int


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imports(node: ast.AST, *, nested: bool) -> Iterator[str]:
    """Every imported name as `package.module` or `package.module.name`; inside functions too where `nested`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (f"{'.' * child.level}{child.module or ''}.{alias.name}" for alias in child.names)
        elif is_type_checking(child) or (
            not nested and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        ):
            continue
        else:
            yield from imports(child, nested=nested)


def parse(text: str) -> Source:
    tree = ast.parse(text)
    return Source(
        at_top=frozenset(imports(tree, nested=False)),
        anywhere=frozenset(imports(tree, nested=True)),
        tree=tree,
        lines=len(text.splitlines()),
    )


def read_sources() -> dict[str, Source]:
    """Module name (`trainables.specs`) → source; a package's `__init__` goes under the package's name."""
    sources = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            sources[name] = parse(path.read_text())
    return sources


def read_rows(document: str) -> list[tuple[tuple[str, ...], frozenset[str]]]:
    """Full module names of each row, and the libraries they may import, from the tables after a line `PACKAGE/` …."""
    rows: list[tuple[tuple[str, ...], frozenset[str]]] = []
    package = ""
    for line in document.splitlines():
        if heading := re.match(r"`([a-z_]+)/` ", line):
            package = heading[1]
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("| `") or len(cells) != 3 or package not in PACKAGES:
            continue
        modules = tuple(f"{package}.{module}" for module in re.findall(r"`([a-z0-9_.]+)`", cells[0]))
        rows.append((modules, frozenset(name.strip() for name in cells[2].split(",")) - {"–"}))
    return rows


def read_tables(document: str) -> dict[str, frozenset[str]]:
    """Module name → libraries it may import."""
    return {module: allowed for modules, allowed in read_rows(document) for module in modules}


def own(names: frozenset[str], sources: Mapping[str, Source]) -> set[str]:
    """The project's own modules among imported names."""
    return {owner for name in names for owner in (name, name.rpartition(".")[0]) if owner in sources}


def libraries(names: frozenset[str]) -> set[str]:
    """Third-party libraries among imported names, under their names in the tables."""
    tops = {name.partition(".")[0] for name in names}
    return {TABLE_NAMES.get(top, top) for top in tops - set(sys.stdlib_module_names) - {*PACKAGES, ""}}


def heavy(module: str, sources: Mapping[str, Source]) -> set[str]:
    """Which of torch and Ray, importing the module imports, through whichever of the project's own modules."""
    seen: set[str] = set()
    waiting = {module}
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        found |= libraries(sources[name].at_top) & HEAVY
        waiting |= own(sources[name].at_top, sources) - seen
    return found


def import_faults(tables: Mapping[str, frozenset[str]], sources: Mapping[str, Source]) -> list[str]:
    faults = [f"{name} is in no table of ARCHITECTURE.md" for name in sorted(set(sources) - set(tables) - {*PACKAGES})]
    faults += [f"{name} is in ARCHITECTURE.md and not in the code" for name in sorted(set(tables) - set(sources))]
    for name, source in sources.items():
        allowed = tables.get(name, frozenset())
        allowed |= WITH_TORCH if "torch" in allowed else frozenset()
        faults += [f"{name} imports {library}" for library in sorted(libraries(source.anywhere) - allowed)]
        through = heavy(name, sources) - libraries(source.anywhere) - allowed
        faults += [f"{name} imports {library} through another module" for library in sorted(through)]
        if name.startswith("trainables"):
            owners = sorted(target for target in own(source.anywhere, sources) if target.startswith("orchestrator"))
            faults += [f"{name} imports {target}" for target in owners]
        relative = sorted(imported for imported in source.anywhere if imported.startswith("."))
        faults += [f"{name} imports {imported} relatively" for imported in relative]
    return faults


def unused_permissions(document: str, sources: Mapping[str, Source]) -> list[str]:
    """Libraries that a row names and none of its modules imports."""
    found = []
    for modules, allowed in read_rows(document):
        present = [name for name in modules if name in sources]
        used = {library for name in present for library in libraries(sources[name].anywhere) | heavy(name, sources)}
        found += [f"{', '.join(modules)} may import {library} and does not" for library in sorted(allowed - used)]
    return found


def dotted(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def runs_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all in it that is executed with it: not the bodies of functions."""
    yield node
    for field, value in ast.iter_fields(node):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and field == "body":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from runs_at_import(child)


def is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def work_at_import(tree: ast.Module) -> list[str]:
    """What the module does when it is imported, beyond defining names."""
    found = []
    for statement in tree.body:
        if is_main_guard(statement) or is_type_checking(statement):
            continue
        if isinstance(statement, ast.For | ast.While | ast.With):
            found.append(f"line {statement.lineno}: a {type(statement).__name__.lower()} statement")
        if isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant):
            found.append(f"line {statement.lineno}: {ast.unparse(statement)}")
        for node in runs_at_import(statement):
            name = dotted(node.func) if isinstance(node, ast.Call) else ""
            reads = isinstance(node, ast.Attribute) and dotted(node) == "os.environ"
            if reads or name in AT_IMPORT or name.startswith(AT_IMPORT_PREFIXES):
                found.append(f"line {statement.lineno}: {name or 'os.environ'}")
    return found
