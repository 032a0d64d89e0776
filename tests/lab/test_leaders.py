"""Which of a rival's settings leads a table."""

from __future__ import annotations

import pandas as pd

from guardband.lab.leaders import Tally, leaders, rival_of, strongest


def test_settings_belong_to_their_rival() -> None:
    assert rival_of("sclts-authors") == rival_of("sclts-gap-oracle") == "sclts"
    assert rival_of("disc-ucb-told") == rival_of("disc-ucb-gap-oracle") == "disc-ucb"
    assert rival_of("fed-pe-cd") == "fed-pe-cd"
    assert rival_of("guard-ucb-policy") == "guard-ucb-policy"


def test_the_least_regret_among_those_that_kept_their_promise() -> None:
    safe, unsafe = Tally("sclts", 9.0, 0.0), Tally("sclts-tuned", 2.0, 1.0)
    assert strongest([safe, unsafe]) == "sclts"
    assert strongest([safe._replace(below=3.0), unsafe]) == "sclts-tuned"
    free = [Tally("fed-lin-ucb", 9.0, 0.0), Tally("fed-lin-ucb-authors", 2.0, 50.0)]
    assert strongest(free) == "fed-lin-ucb-authors"


def test_inferred_rivals_lead_no_table() -> None:
    played = {
        "guard-ucb": 5.0,
        "guard-ucb-free": 4.0,
        "sege": 1.0,
        "sclts": 9.0,
        "sclts-tuned": 7.0,
        "roful": 6.0,
        "baseline": 99.0,
    }
    table = pd.DataFrame(
        {"algorithm": list(played), "regret": list(played.values()), "below floor, expected": 0.0}
    )
    found = leaders(table)
    assert found["algorithm"].tolist() == [
        *("guard-ucb", "guard-ucb-free", "roful", "sclts-tuned", "sege", "baseline")
    ]
    (row,) = found[found["algorithm"] == "sclts-tuned"].to_dict("records")
    assert (row["setting"], row["others"], row["reading"]) == ("tuned", "theory 9", "partly read")
