"""Which module, gradient or weight was not finite first."""

import torch
from torch import Tensor, nn

from trainables.finiteness import StepWatch, first_nonfinite_weight, nonfinite_rows

INFINITE = float("inf")


class Scores(nn.Module):
    """Attention-like: what overflows is computed between its two layers, in no module of its own."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor
        self.before = nn.Linear(4, 4)
        self.after = nn.Sequential(nn.Dropout(0.0), nn.Linear(4, 4))

    def forward(self, values: Tensor) -> Tensor:
        return self.after(self.before(values) * self.factor)


def seen(model: nn.Module, values: Tensor) -> tuple[list[str], dict[str, float]]:
    watch = StepWatch(model)
    with watch.watching():
        model(values).sum().backward()
    return list(dict.fromkeys(one.module for one in watch.nonfinite_outputs())), watch.gradient_norms()


def test_what_a_module_computes_between_its_layers_is_its_own() -> None:
    model = nn.Sequential(nn.Linear(4, 4), Scores(INFINITE), nn.Linear(4, 4))
    modules, _ = seen(model, torch.ones(2, 4))
    assert modules[0] == "1"
    assert modules.index("1") < modules.index("1.after.0")


def test_finite_values_are_seen_nowhere() -> None:
    modules, norms = seen(Scores(1.0), torch.ones(2, 4))
    assert modules == []
    assert next(iter(norms)).startswith("after.1.")
    assert all(norm < INFINITE for norm in norms.values())


def test_gradient_norms_are_those_of_the_parameters() -> None:
    model = nn.Linear(3, 1, bias=False)
    _, norms = seen(model, torch.tensor([[2.0, 3.0, 6.0]]))
    assert norms == {"weight": 7.0}


def test_the_square_of_a_large_gradient_is_not_taken_for_an_infinity() -> None:
    _, norms = seen(nn.Linear(1, 1, bias=False), torch.tensor([[1e30]]))
    assert 0.9e30 < norms["weight"] < 1.1e30


def test_outputs_packed_in_mappings_and_lists_are_looked_into() -> None:
    class Packed(nn.Module):
        def forward(self, values: Tensor) -> dict[str, list[object]]:
            return {"kept": [None, values.long(), values / 0]}

    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.packed = Packed()
            self.last = nn.Linear(2, 2)

        def forward(self, values: Tensor) -> Tensor:
            self.packed(values)
            return self.last(values)

    assert seen(Around(), torch.ones(1, 2))[0] == ["packed"]


def test_nothing_is_watched_any_more_afterwards() -> None:
    model = Scores(INFINITE)
    watch = StepWatch(model)
    with watch.watching():
        model(torch.ones(2, 4))
    watch.begin()
    model(torch.ones(2, 4)).sum().backward()
    assert watch.nonfinite_outputs() == []
    assert watch.gradient_norms() == {}


def test_weights_and_rows_of_a_batch_are_named() -> None:
    model = Scores(1.0)
    assert first_nonfinite_weight(model) is None
    with torch.no_grad():
        model.after[1].bias[2] = INFINITE
    assert first_nonfinite_weight(model) == "after.1.bias"
    images = torch.zeros(4, 1, 2, 2)
    images[1, 0, 1, 1] = float("nan")
    images[3] = -INFINITE
    assert nonfinite_rows(images) == (1, 3)
