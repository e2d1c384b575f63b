"""Models by name and by entry."""

import contextlib
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from trainables.errors import InputError
from trainables.models import build_model


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.fixture
def user_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "user_models.py").write_text(
        "from torch import nn\n"
        "def linear(num_classes, input_shape, width=1):\n"
        "    net = nn.Linear(input_shape[0] * width, num_classes); return net\n"
        "def classes_alone(num_classes): return nn.Linear(1, num_classes)\n"
        "def nothing(): return nn.Linear(1, 3)\n"
        "def everything(*a, **k): net = nn.Identity(); net.given = k; return net\n"
        "def text(): return 'a model'\n"
        "def raising(): raise KeyError('weights')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


@pytest.mark.parametrize(
    ("name", "shape", "count"), [("fashion_cnn", (1, 28, 28), 421_642), ("digits_cnn", (1, 8, 8), 53_002)]
)
def test_the_built_in_models_have_the_stated_number_of_parameters(
    name: str, shape: tuple[int, int, int], count: int
) -> None:
    assert parameters(build_model(name, {}, num_classes=10, input_shape=shape)) == count


@pytest.mark.parametrize("name", ["digits_cnn", "fashion_cnn"])
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 20), (1, 28, 28), (2, 4, 5)])
def test_the_built_in_models_adapt_to_images_and_classes(name: str, shape: tuple[int, int, int]) -> None:
    model = build_model(name, {"width": 4, "hidden": 8}, num_classes=7, input_shape=shape)
    assert model(torch.zeros(2, *shape)).shape == (2, 7)


def test_an_image_that_would_vanish_is_refused() -> None:
    with pytest.raises(InputError, match="at least 4×4, got 3×8"):
        build_model("digits_cnn", {}, num_classes=10, input_shape=(1, 3, 8))


def test_the_same_seed_gives_the_same_weights() -> None:
    first, second = (_seeded_digits_cnn() for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first.values(), second.values(), strict=True))


def _seeded_digits_cnn() -> dict[str, torch.Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return build_model("digits_cnn", {}, num_classes=10, input_shape=(1, 8, 8)).state_dict()


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28)])
def test_a_torchvision_model_takes_colour_and_grey_images(shape: tuple[int, int, int]) -> None:
    model = build_model("resnet18", {}, num_classes=5, input_shape=shape)
    assert model(torch.zeros(2, *shape)).shape == (2, 5)


def test_a_model_that_was_trained_on_larger_images_takes_smaller_ones_where_it_can() -> None:
    with torch.device("meta"):  # 88 million weights need not be drawn
        model = build_model("vit_b_32", {}, num_classes=5, input_shape=(3, 32, 32))
        assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 5)


def test_googlenet_gives_logits_while_training_too() -> None:
    with torch.device("meta"):
        model = build_model("googlenet", {}, num_classes=5, input_shape=(3, 32, 32))
        assert model.train()(torch.zeros(2, 3, 32, 32)).shape == (2, 5)


@pytest.mark.parametrize(
    ("name", "shape", "text"),
    [
        ("squeezenet1_1", (1, 8, 8), "at least 17×17, got 8×8"),
        ("vit_b_32", (3, 28, 28), "indivisible by patch size"),
        ("resnet18", (2, 32, 32), "1 or 3 channels, got 2"),
    ],
)
def test_images_that_a_torchvision_model_cannot_take_are_refused(
    name: str, shape: tuple[int, int, int], text: str
) -> None:
    with torch.device("meta"), pytest.raises(InputError, match=text):
        build_model(name, {}, num_classes=5, input_shape=shape)


def test_building_a_model_and_trying_it_out_draws_for_its_weights_alone() -> None:
    states = []
    with torch.random.fork_rng():
        for side in (17, 16):  # the second is below the stated size, and is tried out
            torch.manual_seed(0)
            with contextlib.suppress(InputError):
                build_model("squeezenet1_1", {}, num_classes=5, input_shape=(3, side, side))
            states.append(torch.get_rng_state())
    assert torch.equal(*states)


def test_model_args_are_passed_on() -> None:
    wide = build_model("mobilenet_v3_small", {"width_mult": 0.5}, num_classes=5, input_shape=(3, 32, 32))
    assert parameters(wide) < parameters(build_model("mobilenet_v3_small", {}, num_classes=5, input_shape=(3, 32, 32)))


@pytest.mark.parametrize(
    ("name", "args", "text"),
    [
        ("digits_cnn", {"widht": 3}, "no argument widht; did you mean width"),
        ("digits_cnn", {"width": 0}, "width must be at least 1, got 0"),
        ("resnet18", {"depth": 3}, "model_args of resnet18.*depth"),
        ("resnt18", {}, "did you mean resnet18"),
        ("zzz", {}, "there is no such model"),
    ],
)
def test_wrong_names_and_arguments_are_answered_with_what_is_right(name: str, args: dict[str, int], text: str) -> None:
    with pytest.raises(InputError, match=text):
        build_model(name, args, num_classes=10, input_shape=(3, 32, 32))


@pytest.mark.usefixtures("user_models")
def test_an_entry_is_given_those_facts_that_it_accepts() -> None:
    def build(name: str, **args: object) -> nn.Module:
        return build_model(f"user_models:{name}", args, num_classes=5, input_shape=(3, 8, 8))

    assert build("linear", width=2).weight.shape == (5, 6)
    assert build("classes_alone").weight.shape == (5, 1)
    assert build("nothing").weight.shape == (3, 1)
    assert build("everything", extra=1).given == {"num_classes": 5, "input_shape": (3, 8, 8), "extra": 1}


@pytest.mark.usefixtures("user_models")
@pytest.mark.parametrize(
    ("name", "args", "text"),
    [
        ("text", {}, "returned a str; it must return a torch.nn.Module"),
        ("classes_alone", {"depth": 1}, "no argument depth; allowed are: none"),
    ],
)
def test_a_wrong_entry_is_refused(name: str, args: dict[str, int], text: str) -> None:
    with pytest.raises(InputError, match=text):
        build_model(f"user_models:{name}", args, num_classes=5, input_shape=(3, 8, 8))


@pytest.mark.usefixtures("user_models")
def test_what_an_entry_raises_goes_through() -> None:
    with pytest.raises(KeyError, match="weights"):
        build_model("user_models:raising", {}, num_classes=5, input_shape=(3, 8, 8))


def test_timm_where_it_is_not_installed_is_answered_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "modules", {name: module for name, module in sys.modules.items() if name != "timm"})
    with pytest.raises(InputError, match="pip install timm"):
        build_model("timm:resnet18", {}, num_classes=5, input_shape=(3, 8, 8))


def test_timm_is_asked_for_a_fresh_model_of_these_classes_and_channels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "timm.py").write_text(
        "from torch import nn\ndef create_model(name, **k): net = nn.Identity(); net.asked = (name, k); return net\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", {name: module for name, module in sys.modules.items() if name != "timm"})
    model = build_model("timm:hf_hub:x/y", {"drop_rate": 0.1}, num_classes=5, input_shape=(1, 8, 8))
    assert model.asked == ("hf_hub:x/y", {"pretrained": False, "num_classes": 5, "in_chans": 1, "drop_rate": 0.1})
