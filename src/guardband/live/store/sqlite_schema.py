"""The tables in SQLite: a list of steps, of which each file has taken a part."""

from __future__ import annotations

__all__ = ["APPLICATION", "FORMAT", "MIGRATIONS"]

APPLICATION = 0x67626364  # "gbcd" in the file's header: this is a coordinator's store

# The n-th step leads from format n - 1 to n. Steps that were released are never changed.
MIGRATIONS = (
    """
create table meta (
    key text primary key,
    value text not null
) strict;
create table space (
    name text primary key,
    config text not null,
    config_version integer not null,
    agents_version integer not null,
    epoch integer not null,
    floor integer not null,
    open integer not null,
    wanted_by text,
    paused text,
    created_at real not null,
    closed_at real
) strict;
create table task (
    space text not null,
    task text not null,
    place integer not null,
    uses text not null,
    status text not null,
    reason text not null,
    since real not null,
    primary key (space, task)
) strict;
create table stream (
    stream text primary key,
    space text not null,
    task text not null,
    state text not null,
    continued_by text,
    registered_at real not null,
    library text not null,
    n integer not null,
    version text not null,
    round integer not null,
    total blob not null,
    answer_epoch integer not null,
    answer_n integer not null,
    answer_version text not null,
    answer_round integer not null,
    answer_total blob not null,
    entry_epoch integer not null,
    entry_n integer not null,
    entry_version text not null,
    entry_round integer not null,
    entry_total blob not null,
    place integer not null
) strict;
create index stream_of_space on stream (space, stream);
create table pulse (
    stream text primary key,
    space text not null,
    task text not null,
    last_seen real not null,
    seen_epoch integer not null,
    config_version integer not null,
    report text not null,
    reported_at real,
    sampled_at real
) strict;
create index pulse_of_space on pulse (space, stream);
create table epoch (
    space text not null,
    epoch integer not null,
    state text not null,
    opened_by text not null,
    opened_at real not null,
    closed_at real,
    streams integer not null,
    streams_in integer not null,
    streams_late integer not null,
    tasks integer not null,
    n integer not null,
    round integer not null,
    total blob,
    sha256 text,
    logdet real,
    primary key (space, epoch)
) strict;
create table entry (
    space text not null,
    epoch integer not null,
    stream text not null,
    task text not null,
    n integer not null,
    version text not null,
    primary key (space, epoch, stream)
) strict, without rowid;
create table audit (
    seq integer primary key autoincrement,
    at real not null,
    space text not null,
    who text not null,
    what text not null,
    detail text not null
) strict;
create index audit_of_space on audit (space, seq);
create table sample (
    space text not null,
    stream text not null,
    level integer not null,
    slot integer not null,
    task text not null,
    at real not null,
    body text not null,
    primary key (space, stream, level, slot)
) strict;
create index sample_by_time on sample (space, level, at);
create table token (
    token text primary key,
    sha256 text not null,
    role text not null,
    space text,
    task text,
    note text not null,
    created_at real not null,
    revoked_at real
) strict;
""",
    "alter table epoch add column excluded integer not null default 0",
)
FORMAT = len(MIGRATIONS)
