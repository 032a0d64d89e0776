import pickle

import pytest

from guardband.data import NAMES, DataError
from guardband.data.catalogue import CATALOGUE, dataset


def test_names() -> None:
    assert NAMES == ("movielens", "lastfm")
    assert all(CATALOGUE[name].name == name for name in NAMES)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("movilens", "movielens"),
        ("MovieLens", "movielens"),
        ("ml-100k", "movielens"),
        ("last.fm", "lastfm"),
        ("hetrec-2011-lastfm", "lastfm"),
    ],
)
def test_wrong_name_gets_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(DataError, match=f"Did you mean '{right}'"):
        dataset(wrong)


def test_far_name_gets_the_list() -> None:
    with pytest.raises(DataError, match="'xyz'; expected one of movielens, lastfm") as caught:
        dataset("xyz")
    assert "Did you mean" not in str(caught.value)


def test_error_survives_a_process_border() -> None:
    error = DataError("here", "this", "that", "Do so.")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "here: found this; expected that. Do so."
    assert again.remedy == "Do so."
