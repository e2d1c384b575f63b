"""The learning rate that follows the batch size, and the one that was written before it did."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.built_outcomes import config
from trainables.lr_rule import LrRule, with_scaled_lr, with_written_lr


@pytest.mark.parametrize(("rule", "lr"), [(LrRule.NONE, 1e-3), (LrRule.LINEAR, 4e-3), (LrRule.SQRT, 2e-3)])
def test_a_batch_four_times_the_reference_scales_by_four_or_its_root(rule: LrRule, lr: float) -> None:
    assert with_scaled_lr(config(batch_size=256), rule, 64).lr == lr


@given(
    st.sampled_from(LrRule),
    st.integers(1, 4096),
    st.integers(1, 4096),
    st.integers(1, 999_999).map(lambda digits: float(f"{digits}e-8")),
)
def test_the_written_learning_rate_is_found_again_to_the_last_digit(
    rule: LrRule, batch_size: int, reference: int, lr: float
) -> None:
    written = config(batch_size=batch_size, lr=lr)
    assert with_written_lr(with_scaled_lr(written, rule, reference), rule, reference) == written
