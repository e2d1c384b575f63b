"""The names of the models and data sets there are, found without importing torch or torchvision."""

import ast
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from trainables.dataset_table import TORCHVISION_SETS

BUILT_IN_MODELS = ("digits_cnn", "fashion_cnn")
BUILT_IN_DATASETS = ("digits", "digits28", "synthetic", "image_folder")


@cache
def model_names() -> tuple[str, ...]:
    """The built-in models, then torchvision's classification models in alphabetical order.

    User entries (`package.module:callable`) and `timm:NAME` are models too, and are not listed.
    """
    return (*BUILT_IN_MODELS, *_torchvision_models())


def dataset_names() -> tuple[str, ...]:
    """The built-in data sets, then torchvision's classification data sets in alphabetical order; user entries are data
    sets too, and are not listed.
    """
    return (*BUILT_IN_DATASETS, *sorted(TORCHVISION_SETS))


def _torchvision_models() -> list[str]:
    """What `@register_model()` marks in torchvision/models/*.py; subfolders hold detection, segmentation and so on."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations:
        return []
    sources = Path(spec.submodule_search_locations[0], "models").glob("*.py")
    return sorted(name for source in sources for name in _registered(source.read_text(encoding="utf-8")))


def _registered(source: str) -> Iterator[str]:
    if "@register_model" not in source:
        return
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                match decorator:
                    case ast.Call(func=ast.Name(id="register_model"), args=[ast.Constant(value=str(name)), *_]):
                        yield name
                    case ast.Call(func=ast.Name(id="register_model")):
                        yield node.name
