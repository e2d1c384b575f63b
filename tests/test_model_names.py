"""The names of models and data sets, found without torch."""

import subprocess
import sys

import torchvision

from trainables.dataset_table import TORCHVISION_SETS
from trainables.datasets import BUILT_IN
from trainables.model_names import BUILT_IN_MODELS, dataset_names, model_names


def test_every_classification_model_of_torchvision_is_named() -> None:
    assert list(model_names()) == [*BUILT_IN_MODELS, *torchvision.models.list_models(module=torchvision.models)]


def test_every_data_set_that_is_named_can_be_loaded() -> None:
    assert set(dataset_names()) == {*BUILT_IN, *TORCHVISION_SETS}


def test_every_data_set_of_the_table_is_a_class_of_torchvision() -> None:
    assert {entry.class_name for entry in TORCHVISION_SETS.values()} <= set(torchvision.datasets.__all__)


def test_neither_torch_nor_torchvision_is_imported_for_the_names() -> None:
    code = (
        "import sys; from trainables.model_names import model_names, dataset_names; names = model_names();"
        "dataset_names(); print('resnet18' in names, 'torch' in sys.modules, 'torchvision' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False"]
