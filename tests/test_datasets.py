"""Data sets by name and by entry: limits, classes, checks."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset

from trainables.datasets import ImageData, load_image_data
from trainables.entries import load_entry
from trainables.errors import InputError
from trainables.image_sources import ImageItems
from trainables.loading import TrainingBatches
from trainables.specs import CompileMode, Precision, TrainingConfig

IMAGE = torch.zeros(1, 4, 4)


class Labelled(Dataset[Any]):
    """Counts how many items were drawn."""

    def __init__(self, *labels: int, image: Tensor = IMAGE, **attributes: Any) -> None:
        self.given = labels
        self.image = image
        self.drawn = 0
        vars(self).update(attributes)

    def __len__(self) -> int:
        return len(self.given)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        self.drawn += 1
        return self.image, self.given[index]


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Loads what a user's entry returns."""
    (tmp_path / "user_sets.py").write_text("def entry(*a, **k): return returned(*a, **k)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))

    def load(*returned: Any, num_classes: int | None = None, **args: Any) -> ImageData:
        module = vars(sys.modules[load_entry("user_sets:entry").__module__])
        module["returned"] = lambda **given: module.update(given=given) or returned
        data = load_image_data("user_sets:entry", args, num_classes=num_classes)
        assert module["given"] == {key: value for key, value in args.items() if not key.endswith("_limit")}
        return data

    return load


def test_an_entry_is_called_with_its_args_but_for_the_limits(entry: Any) -> None:
    data = entry(Labelled(0, 1, 2), Labelled(1, 0), size=3, train_limit=2, validation_limit=1)
    assert (len(data.train), len(data.validation), data.test) == (2, 1, None)
    assert data.input_shape == (1, 4, 4)
    assert data.scored


def test_an_entry_may_return_a_test_set(entry: Any) -> None:
    assert len(entry(Labelled(0, 1), Labelled(0), Labelled(0, 0, 0)).test) == 3


def test_num_classes_comes_from_the_space_then_from_classes_then_from_the_labels(entry: Any) -> None:
    parts = Labelled(0, 1, classes=["a", "b", "c"]), Labelled(0)
    assert entry(*parts, num_classes=7).num_classes == 7
    assert entry(*parts).num_classes == 3
    assert entry(Subset(parts[0], [0, 1]), parts[1]).num_classes == 3
    assert entry(Labelled(0, 1), Labelled(4)).num_classes == 5


@pytest.mark.parametrize(
    "train",
    [
        Labelled(0, 3, targets=[0, 3]),
        Labelled(0, 3, labels=torch.tensor([0, 3])),
        TensorDataset(torch.zeros(2, 1, 4, 4), torch.tensor([0, 3])),
        Subset(Labelled(1, 0, 3, targets=[1, 0, 3]), [1, 2]),
        ConcatDataset([Labelled(0, targets=[0]), Labelled(3, targets=[3])]),
    ],
)
def test_labels_that_are_stored_are_read_without_drawing_every_item(entry: Any, train: Dataset[Any]) -> None:
    data = entry(train, Labelled(0, targets=[0]))
    assert data.num_classes == 4
    assert data.notes == ()


@pytest.mark.parametrize(
    "attributes",
    [
        {"targets": [9, 9]},
        {"targets": [0]},
        {"targets": ["a", "b"]},
        {"targets": [[0, 1], [1]]},
        {"labels": torch.eye(2)},
        {"labels": None},
        {"targets": [0, 1], "target_transform": abs},
    ],
)
def test_stored_labels_that_are_not_the_items_labels_are_not_believed(entry: Any, attributes: dict[str, Any]) -> None:
    train = Labelled(0, 3, **attributes)
    data = entry(train, Labelled(0))
    assert data.num_classes == 4
    assert train.drawn >= 2
    assert "every item was drawn once" in data.notes[0]


def test_limited_sets_are_not_drawn_beyond_their_limit(entry: Any) -> None:
    train = Labelled(*range(50))
    assert entry(train, Labelled(0), train_limit=3).num_classes == 3
    assert train.drawn == 4  # the first item, and three labels


@pytest.mark.parametrize(
    ("train", "validation", "text"),
    [
        (Labelled(0, 10, targets=[0, 10]), Labelled(0), "training set: item 1 has the label 10; with 10 classes"),
        (Labelled(0), Labelled(0, -1, targets=[0, -1]), "validation set: item 1 has the label -1"),
    ],
)
def test_a_stored_label_out_of_range_is_found_before_training(
    entry: Any, train: Dataset[Any], validation: Dataset[Any], text: str
) -> None:
    with pytest.raises(InputError, match=text):
        entry(train, validation, num_classes=10)


def test_a_label_out_of_range_that_is_stored_nowhere_is_found_when_it_is_drawn(entry: Any) -> None:
    data = entry(Labelled(*[0] * 7, 99), Labelled(0), num_classes=10)
    config = TrainingConfig(precision=Precision.FP32, batch_size=8, compile=CompileMode.OFF, lr=1.0, num_workers=0)
    with pytest.raises(InputError, match="training set: item 7 has the label 99"):
        next(TrainingBatches(data.train, config=config, seed=0, pin_memory=False).epoch(0))


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ((Labelled(0),), "returned 1 values; it must return"),
        ((Labelled(0), []), "validation set: it is empty"),
        ((5, Labelled(0)), "training set: a int is not a map-style data set"),
        ((Labelled(0), Labelled(0, image=torch.zeros(3, 4, 4))), r"training \(1, 4, 4\), validation \(3, 4, 4\)"),
    ],
)
def test_a_wrong_return_is_refused(entry: Any, returned: tuple[Any, ...], text: str) -> None:
    with pytest.raises(InputError, match=text):
        entry(*returned)


def test_a_relative_path_in_an_entry_is_found_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "relative_sets.py").write_text(
        "from pathlib import Path\nfrom torch import zeros\n"
        "def entry(file):\n"
        "    n = int(Path(file).read_text())\n"
        "    return [(zeros(1, 2, 2), 0)] * n, [(zeros(1, 2, 2), 1)]\n"
    )
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.txt").write_text("3")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    data = load_image_data("relative_sets:entry", {"file": "data/x.txt"}, num_classes=None)
    assert len(data.train) == 3  # type: ignore[arg-type]
    assert isinstance(data.train, ImageItems)


@pytest.mark.parametrize(
    ("name", "args", "texts"),
    [
        ("digts", {}, ["there is no such data set; did you mean digits?"]),
        ("nothing_like_it", {}, ["there are: digits, digits28, synthetic, image_folder, caltech101"]),
        ("digits", {"augment": True}, ["no argument augment; allowed are: train_limit, validation_limit"]),
        ("digits", {"train_limt": 3}, ["no argument train_limt; did you mean train_limit?"]),
        (
            "digits",
            {"train_limit": 0, "validation_limit": 2.5},
            ["train_limit must be at least 1, got 0", "validation_limit must be a whole number, got 2.5"],
        ),
        ("digits", {"train_limit": True}, ["train_limit must be a whole number, got True"]),
    ],
)
def test_wrong_names_and_arguments_are_answered_with_what_is_right(
    name: str, args: dict[str, Any], texts: list[str]
) -> None:
    with pytest.raises(InputError) as error:
        load_image_data(name, args, num_classes=None)
    assert len(error.value.messages) == len(texts)
    for message, text in zip(error.value.messages, texts, strict=True):
        assert text in message


def test_a_limit_beyond_the_data_set_is_said() -> None:
    data = load_image_data("digits", {"train_limit": 5000, "validation_limit": 10}, num_classes=None)
    assert data.notes == ("train_limit 5000 is more than the 1437 images there are: all of them are used",)
    assert (len(data.train), len(data.validation)) == (1437, 10)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["toy256", "n129", "own_rng", "worker_stuck", "lambda_transform", "slow"])
def test_the_recorded_faults_data_sets_are_read(shared: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.syspath_prepend(shared / "cases" / "open")
    data = load_image_data(f"fixtures.data:{name}", {}, num_classes=10)
    assert (data.num_classes, data.input_shape) == (10, (1, 28, 28))


def test_the_recorded_wrong_label_is_found_before_training(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(shared / "cases" / "open")
    with pytest.raises(InputError, match="training set: item 0 has the label 99; with 10 classes"):
        load_image_data("fixtures.data:bad_label", {}, num_classes=10)
