"""User code by name: `package.module:callable` found and loaded, and fingerprints of user code and of data files."""

import ast
import difflib
import hashlib
import importlib
import importlib.machinery
import importlib.util
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

from trainables.errors import InputError

ENTRY = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<attribute>[^\W\d]\w*(\.[^\W\d]\w*)*)")
TIMM_PREFIX = "timm:"
"""`timm:NAME` names a model of the timm package; it is no entry."""


def is_entry(name: str) -> bool:
    """Whether `name` is meant as `package.module:callable`, rightly written or not."""
    return ":" in name and not name.startswith(TIMM_PREFIX)


def load_entry(name: str) -> Callable[..., Any]:
    """The callable that `name` stands for; its module is imported. Modules in the working folder are found.

    Raises `InputError` where there is no such module or attribute, or where importing the module raises.
    """
    module_name, attribute = _parts(name)
    module = _imported(name, module_name)
    try:
        loaded = operator.attrgetter(attribute)(module)
    except AttributeError as error:
        raise InputError(_no_attribute(name, module, attribute)) from error
    if not callable(loaded):
        raise InputError(
            f"{name}: {attribute} in {_place(module)} is a {type(loaded).__name__}, which cannot be called; "
            f"name a function or a class"
        )
    return loaded  # type: ignore[no-any-return]  # `callable` says nothing of the return type, nor does an entry


def refuse_missing(names: Iterable[str]) -> None:
    """Raises `InputError` for every entry that cannot be there, as far as its source tells: nothing is imported.

    A module that is no Python source, or that makes names as it goes (`import *`, `__getattr__`), is for `load_entry`.
    """
    problems = [problem for name in names if is_entry(name) and (problem := _missing(name)) is not None]
    if problems:
        raise InputError(*problems)


def code_fingerprint(names: Iterable[str]) -> str | None:
    """SHA-256 over the paths and contents of every *.py file in the top-level package (or the module's one file) of
    each entry among `names`; None where there is no entry. Nothing is imported.

    Raises `InputError` where an entry's top-level package is not there.
    """
    entries = sorted({_parts(name)[0].partition(".")[0]: name for name in names if is_entry(name)}.items())
    if not entries:
        return None
    digest = hashlib.sha256()
    for top_level, name in entries:
        for relative, path in _source_files(name, top_level):
            content = path.read_bytes()
            digest.update(f"{relative}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()


def data_fingerprint(dataset: str, dataset_args: Mapping[str, Any]) -> str | None:
    """SHA-256 over the names and sizes of the files under `root`; None where no local file is named by it."""
    root = dataset_args.get("root")
    if not isinstance(root, (str, os.PathLike)):
        return None
    folder = Path(root).expanduser()
    if not folder.exists():
        return None
    digest = hashlib.sha256(f"{dataset}\0".encode())
    for relative, size in sorted(_names_and_sizes(folder)):
        digest.update(f"{relative}\0{size}\0".encode())
    return digest.hexdigest()


def _missing(name: str) -> str | None:
    module, attribute = _parts(name)
    path = _module_file(name, module)
    if path is None:
        return None
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError as error:
        return f"{name}: {path}:{error.lineno}: {error.msg}"
    bound = set(_bound_names(tree.body))
    first = attribute.partition(".")[0]
    if first in bound or bound & {"*", "__getattr__"}:
        return None
    near = difflib.get_close_matches(first, bound, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(bound)) or 'no names'}"
    return f"{name}: there is no {first} in {path}; {hint}"


def _module_file(name: str, module: str) -> Path | None:
    """The source of a module; None where it is of another kind. Raises `InputError` where there is none at all."""
    top_level, *rest = module.split(".")
    spec = _top_level_spec(top_level)
    if spec is None:
        raise InputError(_no_module(name, top_level))
    if spec.submodule_search_locations is None:
        return Path(spec.origin) if spec.origin is not None and spec.origin.endswith(".py") and not rest else None
    for folder in spec.submodule_search_locations:
        path = Path(folder, *rest)
        for source in (path / "__init__.py", path.with_name(f"{path.name}.py")):
            if source.is_file():
                return source
        if path.is_dir() or list(path.parent.glob(f"{path.name}.*")):
            return None
    raise InputError(_no_module(name, module))


def _bound_names(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """Names that a module's own statements bind, also within its `if`, `try` and `with`; `*` for an `import *`."""
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in statement.names)
        else:
            nested = [node for node in ast.walk(statement) if node is not statement]
            yield from _bound_names(node for node in nested if isinstance(node, _DEFINITIONS))
            yield from (node.id for node in nested if _is_binding(node))


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def _is_binding(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _parts(name: str) -> tuple[str, str]:
    match = ENTRY.fullmatch(name)
    if match is None:
        raise InputError(f"{name!r}: an entry is written package.module:callable, such as my_package.models:build")
    return match["module"], match["attribute"]


def _make_working_folder_importable() -> None:
    """`python -m` puts the working folder on `sys.path`; worker processes and console scripts may not."""
    folder = str(Path.cwd())
    if "" not in sys.path and folder not in sys.path:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()


def _imported(name: str, module_name: str) -> ModuleType:
    _make_working_folder_importable()
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise InputError(_no_module(name, error.name)) from error
        raise InputError(
            f"{name}: importing {module_name} needs the module {error.name}, which is not installed"
        ) from error
    except (Exception, SystemExit) as error:  # a script without a `__main__` guard may end in SystemExit
        raise InputError(f"{name}: importing {module_name} raised {type(error).__name__}: {error}") from error


def _no_module(name: str, missing: str) -> str:
    return (
        f"{name}: there is no module {missing}; looked in the working folder {Path.cwd()} and the rest of sys.path "
        f"({len(sys.path)} places); start in the folder that holds {missing.partition('.')[0]}, or add that folder "
        f"to PYTHONPATH"
    )


def _no_attribute(name: str, module: ModuleType, attribute: str) -> str:
    callables = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    near = difflib.get_close_matches(attribute, callables, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(callables)) or 'no callables'}"
    return f"{name}: there is no {attribute} in {_place(module)}; {hint}"


def _place(module: ModuleType) -> str:
    return f"{module.__name__} ({module.__file__ or 'no file'})"


def _source_files(name: str, top_level: str) -> Iterator[tuple[str, Path]]:
    spec = _top_level_spec(top_level)
    if spec is None:
        raise InputError(_no_module(name, top_level))
    if spec.submodule_search_locations is None:
        if spec.origin is not None and Path(spec.origin).is_file():
            yield Path(spec.origin).name, Path(spec.origin)
        return
    for folder in spec.submodule_search_locations:
        yield from sorted((f"{top_level}/{relative}", Path(folder, relative)) for relative in _python_files(folder))


def _top_level_spec(top_level: str) -> importlib.machinery.ModuleSpec | None:
    _make_working_folder_importable()
    try:
        return importlib.util.find_spec(top_level)
    except ValueError:  # an already imported module may be without a spec, as `__main__` is
        return None


def _python_files(folder: str) -> Iterator[str]:
    for path, folders, files in os.walk(folder):
        folders[:] = [entry for entry in folders if entry != "__pycache__" and not entry.startswith(".")]
        yield from (Path(path, file).relative_to(folder).as_posix() for file in files if file.endswith(".py"))


def _names_and_sizes(root: Path) -> Iterator[tuple[str, int]]:
    if root.is_file():
        yield root.name, root.stat().st_size
    for path, _, files in os.walk(root, followlinks=True):
        for file in files:
            found = Path(path, file)
            if found.exists():  # a dangling link is no file
                yield found.relative_to(root).as_posix(), found.stat().st_size
