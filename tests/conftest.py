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
