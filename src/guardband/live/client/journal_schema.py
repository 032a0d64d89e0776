"""The tables of a journal, from the first format on, and their rows as they are read.

decision and outcome hold what was decided and how it ended, logged what was learned from logs, head
what they add up to; stream, cut, epoch, level and config what a decision was based on, so that it
can be made again; control the switches of the coordinator; tally the counters of reports; account
what may be spent; monitor what monitors remembered now and then, and alarm what they noticed.
"""

from __future__ import annotations

from typing import NamedTuple

from guardband.uplift import Stake, stake_of

__all__ = ["COLUMNS", "FORMAT", "MIGRATIONS", "Head", "StoredDecision"]

FORMAT = 15
COLUMNS = 44  # of a decision

# What brings a file from one format to the next; never changed, only added to.
MIGRATIONS = (
    """
    CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE config(version INTEGER PRIMARY KEY, space TEXT NOT NULL, at REAL NOT NULL);
    CREATE TABLE stream(
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, began_at REAL NOT NULL,
        task_index INTEGER, delta_share REAL, moved_from INTEGER, moved_n INTEGER,
        chain TEXT NOT NULL
    );
    CREATE TABLE cut(
        stream INTEGER, n INTEGER, version TEXT, round INTEGER NOT NULL, part BLOB, total BLOB,
        PRIMARY KEY(stream, n, version)
    ) WITHOUT ROWID;
    CREATE TABLE epoch(
        epoch INTEGER, stream INTEGER, total BLOB, own_n INTEGER NOT NULL,
        own_version TEXT NOT NULL, round INTEGER NOT NULL, excluded INTEGER NOT NULL,
        heard_at REAL NOT NULL, adopted_at REAL, PRIMARY KEY(epoch, stream)
    ) WITHOUT ROWID;
    CREATE TABLE control(
        id INTEGER PRIMARY KEY CHECK (id = 1), config INTEGER NOT NULL, paused TEXT,
        leased_at REAL, leased_for REAL
    );
    CREATE TABLE head(
        id INTEGER PRIMARY KEY CHECK (id = 1), stream INTEGER NOT NULL, settled INTEGER NOT NULL,
        n INTEGER NOT NULL, own BLOB NOT NULL, round INTEGER NOT NULL, due INTEGER NOT NULL,
        heard INTEGER NOT NULL, tally BLOB NOT NULL, revision INTEGER NOT NULL
    );
    CREATE TABLE tally(
        stream INTEGER, key TEXT, count INTEGER NOT NULL, PRIMARY KEY(stream, key)
    ) WITHOUT ROWID;
    CREATE TABLE decision(
        seq INTEGER PRIMARY KEY, stream INTEGER NOT NULL, at REAL NOT NULL, round INTEGER NOT NULL,
        config INTEGER NOT NULL, epoch INTEGER NOT NULL, n INTEGER NOT NULL,
        action INTEGER NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL,
        wish INTEGER, baseline INTEGER NOT NULL, baseline_reward REAL, coin REAL NOT NULL,
        propensity REAL NOT NULL, mean REAL, width REAL, floor REAL, margin REAL,
        promise TEXT NOT NULL, certificate TEXT NOT NULL,
        x BLOB NOT NULL, guess REAL NOT NULL, weight REAL NOT NULL, careful INTEGER NOT NULL,
        features BLOB NOT NULL, extras BLOB
    );
    CREATE TABLE outcome(
        seq INTEGER PRIMARY KEY, ended INTEGER NOT NULL, reward REAL, at REAL NOT NULL,
        stream INTEGER, k INTEGER, late REAL
    );
    """,
    # With which share of delta decisions were made, from a number on: a coordinator that was
    # restored may give a stream another. `rule` is how it is spent; in format 1 it was otherwise.
    """
    CREATE TABLE level(
        stream INTEGER, from_seq INTEGER, share REAL NOT NULL, rule INTEGER NOT NULL DEFAULT 2,
        PRIMARY KEY(stream, from_seq)
    ) WITHOUT ROWID;
    INSERT INTO level SELECT id, 0, delta_share, 1 FROM stream WHERE delta_share IS NOT NULL;
    INSERT INTO level SELECT id, (SELECT coalesce(max(seq), 0) + 1 FROM decision), delta_share, 2
        FROM stream WHERE delta_share IS NOT NULL;
    """,
    # What shadow mode would have played.
    "ALTER TABLE decision RENAME COLUMN wish TO shadow_action;",
    # What a decision was charged with, what had been spent before it, and of which allowance. The
    # account says what this journal was granted, and the mark tells it from its copies.
    """
    ALTER TABLE decision ADD COLUMN allowance REAL;
    ALTER TABLE decision ADD COLUMN spent REAL NOT NULL DEFAULT 0;
    ALTER TABLE decision ADD COLUMN charge REAL NOT NULL DEFAULT 0;
    CREATE TABLE account(
        id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL, mark TEXT NOT NULL,
        spent_before REAL NOT NULL, granted REAL NOT NULL
    );
    """,
    # Rows of logs, each the k-th observation of its stream. They are not among the decisions: they
    # have no menu, no window and no turn to wait for, and are never pruned, because an id that was
    # learned must be known for ever.
    """
    CREATE TABLE logged(
        stream INTEGER, k INTEGER, id TEXT NOT NULL UNIQUE, x BLOB NOT NULL, guess REAL NOT NULL,
        weight REAL NOT NULL, reward REAL NOT NULL, PRIMARY KEY(stream, k)
    ) WITHOUT ROWID;
    """,
    # Whether a row had been looked at before: then promises that rest on it are "reused".
    "ALTER TABLE logged ADD COLUMN reused INTEGER NOT NULL DEFAULT 0;",
    # The sums without each other task, where one of them may lie.
    "ALTER TABLE epoch ADD COLUMN others BLOB;",
    # The values of actions, where decisions were made for them, come last in `extras`: no table
    # changes, but versions that do not know them must not read on.
    "",
    # With a holdback: its coin, the predicted lead of the choice over the baseline, the weight of
    # what was played and its predicted reward, by which the reward says what the choice earns.
    """
    ALTER TABLE decision ADD COLUMN hold REAL;
    ALTER TABLE decision ADD COLUMN lead REAL;
    ALTER TABLE decision ADD COLUMN share REAL;
    ALTER TABLE decision ADD COLUMN predicted REAL;
    """,
    # What the action played and the baseline are worth to the caller; what each action costs, what
    # was spent before (as `kernels.purse` has it, and what may be), what was charged, and what it
    # cost, where that is told afterwards; and what somebody else played instead, whose features,
    # weight and prediction then stand in the place of the decision's own. The account has what may
    # be spent of the budget for costs, too.
    """
    ALTER TABLE decision ADD COLUMN value REAL;
    ALTER TABLE decision ADD COLUMN baseline_value REAL;
    ALTER TABLE decision ADD COLUMN costs BLOB;
    ALTER TABLE decision ADD COLUMN purse BLOB;
    ALTER TABLE decision ADD COLUMN cost REAL;
    ALTER TABLE decision ADD COLUMN paid REAL;
    ALTER TABLE decision ADD COLUMN override INTEGER;
    ALTER TABLE account ADD COLUMN cost_before REAL NOT NULL DEFAULT 0;
    ALTER TABLE account ADD COLUMN cost_granted REAL NOT NULL DEFAULT 0;
    ALTER TABLE account ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE account ADD COLUMN purse BLOB;
    """,
    # How much of the budget for costs was claimed on disk before it was spent, and in which boot:
    # after a power failure all of that is taken for spent.
    """
    ALTER TABLE account ADD COLUMN claimed REAL NOT NULL DEFAULT 0;
    ALTER TABLE account ADD COLUMN boot TEXT;
    """,
    # Random, so that no two decisions have one id, in whichever copies of a folder they were made.
    "ALTER TABLE decision ADD COLUMN mark INTEGER;",
    # Monitors: the weight with which they watch a reward (0: they do not), and the certified lower
    # bound of a learned play. What they remember follows from the rewards since the last line of
    # `monitor`; there is one for every change of another kind. `why` a stream began: after an
    # alarm, or because the pool was made anew; the rewards of decisions before it do not count.
    """
    ALTER TABLE decision ADD COLUMN declared REAL NOT NULL DEFAULT 0;
    ALTER TABLE decision ADD COLUMN lower REAL;
    ALTER TABLE logged ADD COLUMN declared REAL NOT NULL DEFAULT 0;
    ALTER TABLE stream ADD COLUMN why TEXT NOT NULL DEFAULT '';
    ALTER TABLE control ADD COLUMN apart INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE monitor(
        stream INTEGER, n INTEGER, from_seq INTEGER, why TEXT NOT NULL, numbers BLOB NOT NULL,
        PRIMARY KEY(stream, n, from_seq)
    ) WITHOUT ROWID;
    CREATE TABLE alarm(
        number INTEGER PRIMARY KEY, stream INTEGER NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL,
        round INTEGER NOT NULL, evidence REAL NOT NULL, at REAL NOT NULL,
        told INTEGER NOT NULL DEFAULT 0, looked_at REAL
    );
    """,
    # Pages carry checksums, which versions before this one would not keep.
    "",
    # Rows carry seals (`sqlite.seal_rows`): all tables are written anew.
    "",
)


class Head(NamedTuple):
    """What changes with every reward; the journal has one row of it."""

    stream: int  # which of the streams in this journal is in use
    settled: int  # all decisions up to this one have ended
    n: int  # observations that count
    own: bytes  # sums since the last checkpoint, as `Sums.as_bytes` writes them
    round: int  # the latest round that counts
    due: int  # whether a pooling is due
    heard: int  # decisions that have a reward, or ended, while earlier ones wait for theirs
    tally: bytes  # counts and sums of what ended
    revision: int  # changes with everything else in the journal that agents read, except:
    rest: str  # the stream's own line, as `rest_of` writes it


class StoredDecision(NamedTuple):
    """A decision as far as its reward needs it, and how it ended, if it did."""

    seq: int
    stream: int
    at: float
    round: int
    config: int
    kind: str
    floor: float | None
    margin: float | None
    x: bytes
    guess: float
    weight: float
    careful: int
    declared: float  # the weight that monitors use
    lower: float | None  # the certified lower bound of a learned play
    lead: float | None  # of a `Stake`: with a holdback, and where it could choose
    share: float | None
    predicted: float | None
    value: float | None  # of what was played, where values were given
    baseline_value: float | None
    cost: float | None  # what was charged to the budget, where there is one
    paid: float | None  # what it cost, where that was told afterwards
    override: int | None  # what somebody else played instead
    mark: int | None  # in its id; not in older ones
    ended: int | None
    reward: float | None
    late: float | None

    @property
    def stake(self) -> Stake | None:
        """What its reward is compared with by the holdback; None: by nothing."""
        return stake_of(self.lead, self.share, self.predicted)
