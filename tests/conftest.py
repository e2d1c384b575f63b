"""Fixtures for the whole suite."""

from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says something of the machine and its neighbours, and nothing of the code.
settings.register_profile("suite", deadline=None, max_examples=50)
settings.load_profile("suite")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and recorded faults beside the checkout, where there is one."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start a Ray come one after another, in one of the processes: each reserves all the machine has."""
    for item in items:
        if item.get_closest_marker("ray") is not None:
            item.add_marker(pytest.mark.xdist_group("ray"))
