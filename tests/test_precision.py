"""What arithmetic runs: the switches, autocast, the scaler, and what is recorded of them."""

import pytest
import torch
from torch import nn

from trainables.precision import (
    DtypeProbe,
    Switches,
    autocast_for,
    build_scaler,
    executed_precision,
    restored_switches,
)
from trainables.specs import Precision

CPU = torch.device("cpu")


@pytest.mark.parametrize("precision", Precision)
def test_tf32_is_on_for_tf32_alone(precision: Precision) -> None:
    with restored_switches():
        Switches.of(precision).apply()
        on = precision is Precision.TF32
        assert torch.backends.cuda.matmul.allow_tf32 is on
        assert torch.backends.cudnn.allow_tf32 is on
        assert torch.get_float32_matmul_precision() == ("high" if on else "highest")
        assert torch.backends.cudnn.benchmark is True
        assert Switches.now() == Switches.of(precision)


@pytest.mark.parametrize("precision", Precision)
def test_the_switches_are_as_before_afterwards_even_after_an_exception(precision: Precision) -> None:
    def set_and_raise() -> None:
        with restored_switches():
            Switches.of(precision).apply()
            raise KeyError

    before = Switches.now()
    with pytest.raises(KeyError):
        set_and_raise()
    assert Switches.now() == before


def test_switches_that_a_user_set_in_both_of_torchs_ways_are_overruled_and_come_back() -> None:
    with restored_switches():
        torch.backends.fp32_precision = "tf32"
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        torch.backends.cudnn.conv.fp32_precision = "ieee"
        mixed = Switches.now()
        with restored_switches():
            Switches.of(Precision.FP32).apply()
            assert not Switches.now().tf32
            assert torch.backends.cudnn.rnn.fp32_precision != "tf32"
            assert torch.backends.cuda.matmul.fp32_precision == "ieee"
        assert Switches.now() == mixed
        assert torch.backends.cudnn.conv.fp32_precision == "ieee"
        torch.backends.cudnn.conv.fp32_precision = "none"


def test_only_fp16_has_a_scaler() -> None:
    assert [precision for precision in Precision if build_scaler(precision, CPU)] == [Precision.FP16]


@pytest.mark.parametrize("precision", [Precision.BF16, Precision.FP32, Precision.TF32])
def test_asking_for_a_scaler_where_there_must_be_none_is_an_error(precision: Precision) -> None:
    with pytest.raises(ValueError, match=f"{precision.value} has float32's range and must not have a GradScaler"):
        build_scaler(precision, CPU, wanted=True)


def test_fp16_without_a_scaler_is_an_error() -> None:
    with pytest.raises(ValueError, match="fp16 needs a GradScaler"):
        build_scaler(Precision.FP16, CPU, wanted=False)


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16, Precision.BF16])
def test_what_is_asked_for_is_what_layers_compute_in_on_a_cpu(precision: Precision) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Softmax(dim=1))
    probe = DtypeProbe()
    autocast = autocast_for(precision, CPU)
    with restored_switches(), probe.watching(model):
        Switches.of(precision).apply()
        if autocast is None:
            model(torch.zeros(2, 4))
        else:
            with autocast:
                model(torch.zeros(2, 4))
        assert executed_precision(probe.seen, Switches.now()) is precision


def test_a_model_that_computes_in_float32_despite_autocast_is_recorded_as_such() -> None:
    class Stubborn(nn.Linear):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", enabled=False):
                return super().forward(images.float())

    model = Stubborn(4, 4)
    probe = DtypeProbe()
    with torch.autocast("cpu", dtype=torch.bfloat16), probe.watching(model):
        model(torch.zeros(2, 4))
    assert executed_precision(probe.seen, Switches.of(Precision.BF16)) is Precision.FP32


def test_tf32_is_recorded_where_the_switches_are_on() -> None:
    assert executed_precision({torch.float32}, Switches.of(Precision.TF32)) is Precision.TF32


def test_the_probe_leaves_no_hook_behind() -> None:
    model = nn.Linear(4, 4)
    probe = DtypeProbe()
    with probe.watching(model):
        pass
    model(torch.zeros(1, 4))
    assert probe.seen == set()


def test_a_part_that_a_user_compiled_is_one_layer_whose_inside_no_hook_enters() -> None:
    model = nn.Sequential(nn.Linear(4, 4), torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), backend="eager"))
    inside = model[1]._orig_mod
    with DtypeProbe().watching(model):
        assert model[0]._forward_hooks
        assert model[1]._forward_hooks
        assert not any(module._forward_hooks for module in inside.modules())
