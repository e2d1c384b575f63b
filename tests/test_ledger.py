"""The ledger: immutable records in a run's folder."""

from pathlib import Path

import pytest

from orchestrator.ledger import Ledger, record_name
from tests.builders import a_spec, an_outcome
from trainables.errors import InputError
from trainables.outcomes import DeviceFacts, TrialStatus


def a_run(tmp_path: Path) -> Ledger:
    ledger = Ledger.create(str(tmp_path), "night")
    ledger.write_space("model: m\n")
    return ledger


def test_what_is_recorded_is_read_back_equal_by_whoever_opens_the_run(tmp_path: Path) -> None:
    ledger = a_run(tmp_path)
    outcomes = [an_outcome(a_spec(lr=lr)) for lr in (0.1, 0.2)]
    for outcome in outcomes:
        ledger.record(outcome)
    again = Ledger.open(str(tmp_path / "night"))
    assert sorted(again.outcomes(), key=lambda o: o.spec.config.lr) == outcomes
    assert again.space_yaml() == "model: m\n"


def test_a_record_is_never_replaced(tmp_path: Path) -> None:
    ledger = a_run(tmp_path)
    ledger.record(an_outcome(accuracy=0.9))
    with pytest.raises(FileExistsError, match="recorded already"):
        ledger.record(an_outcome(accuracy=0.1))
    assert [outcome.accuracy for outcome in ledger.outcomes()] == [0.9]


def test_attempts_replicates_and_devices_are_records_of_their_own() -> None:
    outcomes = [
        an_outcome(),
        an_outcome(attempts=2),
        an_outcome(a_spec(replicate=1)),
        an_outcome(device=DeviceFacts(device="NVIDIA H200")),
        an_outcome(status=TrialStatus.UNSUPPORTED, device=DeviceFacts()),
        an_outcome(segment_end=1),
    ]
    assert len({record_name(outcome) for outcome in outcomes}) == len(outcomes)


def test_a_cut_off_record_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    ledger = a_run(tmp_path)
    whole = ledger.record(an_outcome(a_spec(lr=0.1)))
    broken = ledger.record(an_outcome(a_spec(lr=0.2)))
    path = tmp_path / "night" / broken
    path.write_bytes(path.read_bytes()[:200])
    assert [record_name(outcome) for outcome in ledger.outcomes()] == [Path(whole).name]
    assert len(ledger.unreadable) == 1
    assert Path(broken).name in ledger.unreadable[0]


def test_a_cut_off_record_is_kept_beside_the_one_of_the_trial_that_ran_again(tmp_path: Path) -> None:
    ledger = a_run(tmp_path)
    path = tmp_path / "night" / ledger.record(an_outcome(accuracy=0.9))
    path.write_bytes(b"{")
    ledger.record(an_outcome(accuracy=0.8))
    assert [outcome.accuracy for outcome in ledger.outcomes()] == [0.8]
    assert path.with_name(f"{path.name}.damaged").read_bytes() == b"{"


def test_an_existing_run_is_not_begun_again(tmp_path: Path) -> None:
    a_run(tmp_path)
    with pytest.raises(InputError, match="--resume"):
        Ledger.create(str(tmp_path), "night")


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "x" * 101, "-flag", "a\nb"])
def test_a_name_cannot_leave_the_storage(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="--name"):
        Ledger.create(str(tmp_path), name)


def test_a_name_may_be_in_any_script(tmp_path: Path) -> None:
    ledger = Ledger.create(str(tmp_path), "ليل-1")
    ledger.write_space("")
    assert Ledger.open(str(tmp_path / "ليل-1")).outcomes() == []


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"space\.yaml is missing"):
        Ledger.open(str(tmp_path))


def test_the_environment_is_empty_until_it_is_known(tmp_path: Path) -> None:
    ledger = a_run(tmp_path)
    assert ledger.environment() == {}
    ledger.write_environment({"python": "3.11"})
    assert ledger.environment() == {"python": "3.11"}


def test_a_damaged_environment_is_refused_with_what_deleting_it_means(tmp_path: Path) -> None:
    ledger = a_run(tmp_path)
    for text in (b"{", b"[1]", b'{"asked": 3}', b"\xff"):
        ledger.storage.write("environment.json", text)
        with pytest.raises(InputError, match=r"environment\.json: is damaged .*delete it"):
            ledger.environment()


def test_a_space_that_is_no_text_is_refused(tmp_path: Path) -> None:
    ledger = a_run(tmp_path)
    ledger.storage.write("space.yaml", b"\xff")
    with pytest.raises(InputError, match=r"space\.yaml: is damaged"):
        ledger.space_yaml()


def test_a_storage_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        Ledger.create(str(tmp_path / "file"), "night").refuse_unwritable()


def test_asking_whether_a_storage_can_be_written_leaves_nothing_in_it(tmp_path: Path) -> None:
    ledger = Ledger.create(str(tmp_path), "night")
    ledger.refuse_unwritable()
    assert list(tmp_path.iterdir()) == []
