"""The tables of a store: a list of steps, of which each database has taken a part."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["POSTGRES", "SQLITE", "migrations"]

# How the databases spell what differs. In PostgreSQL, names compare byte by byte (collation "C"),
# as in Python and SQLite: epochs are sums in the order of the streams' names, whatever the
# database's locale is. Rows of a {busy} table are written again and again and leave room in their
# page, so that PostgreSQL need not touch the indexes.
SQLITE = {
    "name": "text",
    "integer": "integer",
    "real": "real",
    "bytes": "blob",
    "counter": "integer primary key autoincrement",
    "table": " strict",
    "busy": " strict",
    "manifest": " strict, without rowid",
    "by_time": "space, level, at",
    "unseal": "",
}
# Replicas of before rows had seals may still write: what they change is unsealed until one of this
# version writes it. The column is one that they always write, and `set_outstanding` does not.
ALWAYS_WRITTEN = {
    "meta": "value",
    "space": "config",
    "task": "status",
    "stream": "library",
    "epoch": "state",
    "entry": "n",
    "token": "role",
    "alarm": "since",
}
UNSEAL = """
create function unseal() returns trigger language plpgsql
    as 'begin new.seal := null; return new; end'""" + "".join(
    f""";
create trigger unseal before update of {column} on {table} for each row
    when (old.seal = new.seal and old.* is distinct from new.*) execute function unseal()"""
    for table, column in ALWAYS_WRITTEN.items()
)
POSTGRES = {
    "name": 'text collate "C"',
    "integer": "bigint",
    "real": "double precision",
    "bytes": "bytea",
    "counter": "bigint generated always as identity primary key",
    "table": "",
    "busy": " with (fillfactor = 50)",
    "manifest": "",
    "by_time": "space, level, at, stream",
    "unseal": UNSEAL,
}

# The n-th step leads from format n - 1 to n. Steps that were released are never changed; a
# semicolon ends a statement, and nothing else.
STEPS = (
    """
create table meta (
    key {name} primary key,
    value text not null
){table};
create table space (
    name {name} primary key,
    config text not null,
    config_version {integer} not null,
    agents_version {integer} not null,
    epoch {integer} not null,
    floor {integer} not null,
    open {integer} not null,
    wanted_by text,
    paused text,
    created_at {real} not null,
    closed_at {real}
){busy};
create table task (
    space {name} not null,
    task {name} not null,
    place {integer} not null,
    uses text not null,
    status text not null,
    reason text not null,
    since {real} not null,
    primary key (space, task)
){table};
create table stream (
    stream {name} primary key,
    space {name} not null,
    task {name} not null,
    state text not null,
    continued_by text,
    registered_at {real} not null,
    library text not null,
    n {integer} not null,
    version text not null,
    round {integer} not null,
    total {bytes} not null,
    answer_epoch {integer} not null,
    answer_n {integer} not null,
    answer_version text not null,
    answer_round {integer} not null,
    answer_total {bytes} not null,
    entry_epoch {integer} not null,
    entry_n {integer} not null,
    entry_version text not null,
    entry_round {integer} not null,
    entry_total {bytes} not null,
    place {integer} not null
){busy};
create index stream_of_space on stream (space, stream);
create table pulse (
    stream {name} primary key,
    space {name} not null,
    task {name} not null,
    last_seen {real} not null,
    seen_epoch {integer} not null,
    config_version {integer} not null,
    report text not null,
    reported_at {real},
    sampled_at {real}
){busy};
create index pulse_of_space on pulse (space, stream);
create table epoch (
    space {name} not null,
    epoch {integer} not null,
    state text not null,
    opened_by text not null,
    opened_at {real} not null,
    closed_at {real},
    streams {integer} not null,
    streams_in {integer} not null,
    streams_late {integer} not null,
    tasks {integer} not null,
    n {integer} not null,
    round {integer} not null,
    total {bytes},
    sha256 text,
    logdet {real},
    primary key (space, epoch)
){table};
create table entry (
    space {name} not null,
    epoch {integer} not null,
    stream {name} not null,
    task text not null,
    n {integer} not null,
    version text not null,
    primary key (space, epoch, stream)
){manifest};
create table audit (
    seq {counter},
    at {real} not null,
    space {name} not null,
    who text not null,
    what text not null,
    detail text not null
){table};
create index audit_of_space on audit (space, seq);
create table sample (
    space {name} not null,
    stream {name} not null,
    level {integer} not null,
    slot {integer} not null,
    task text not null,
    at {real} not null,
    body text not null,
    primary key (space, stream, level, slot)
){table};
create index sample_by_time on sample ({by_time});
create table token (
    token {name} primary key,
    sha256 text not null,
    role text not null,
    space text,
    task text,
    note text not null,
    created_at {real} not null,
    revoked_at {real}
){table};
""",
    "alter table epoch add column excluded {integer} not null default 0",
    """
alter table space add column pool {integer} not null default 0;
alter table space add column fresh {integer} not null default 0;
alter table stream add column pool {integer} not null default 0;
alter table epoch add column pool {integer} not null default 0;
create table alarm (
    stream {name} not null,
    kind {name} not null,
    space {name} not null,
    task {name} not null,
    round {integer} not null,
    evidence {real} not null,
    since {real} not null,
    looked_at {real},
    looked_by text,
    primary key (stream, kind)
){table};
create index alarm_of_space on alarm (space, since);
""",
    "alter table space add column outstanding {integer} not null default 0",
    # Pages of SQLite files carry checksums, which versions before this one would not keep.
    "",
    ";".join(f"alter table {table} add column seal {{integer}}" for table in ALWAYS_WRITTEN)
    + ";{unseal}",
)


def migrations(spelling: Mapping[str, str]) -> tuple[str, ...]:
    """Return the steps as one database spells them."""
    return tuple(step.format(**spelling) for step in STEPS)
