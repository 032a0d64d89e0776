"""The tables in PostgreSQL: a list of steps, of which each database has taken a part."""

from __future__ import annotations

from guardband.live.store.base import StoreError
from guardband.live.store.postgres_connections import Work

__all__ = ["FORMAT", "SCHEMA", "migrate"]

SCHEMA = "guardband"  # all tables are in a schema of our own; whatever else is there, stays
MIGRATING = 0x67626D  # the number of the lock under which the tables change

# Text compares byte by byte (collation "C"), as in Python and SQLite: epochs are sums in the order
# of the streams' names, whatever the database's locale is. Rows that are written again and again
# leave room in their page, so that PostgreSQL need not touch the indexes.
VERSION_1 = """
create table guardband.meta (
    key text collate "C" primary key,
    value text not null
);
create table guardband.space (
    name text collate "C" primary key,
    config text not null,
    config_version bigint not null,
    agents_version bigint not null,
    epoch bigint not null,
    floor bigint not null,
    open bigint not null,
    wanted_by text,
    paused text,
    created_at double precision not null,
    closed_at double precision
) with (fillfactor = 50);
create table guardband.task (
    space text collate "C" not null,
    task text collate "C" not null,
    place bigint not null,
    uses text not null,
    status text not null,
    reason text not null,
    since double precision not null,
    primary key (space, task)
);
create table guardband.stream (
    stream text collate "C" primary key,
    space text collate "C" not null,
    task text collate "C" not null,
    state text not null,
    continued_by text,
    registered_at double precision not null,
    library text not null,
    n bigint not null,
    version text not null,
    round bigint not null,
    total bytea not null,
    answer_epoch bigint not null,
    answer_n bigint not null,
    answer_version text not null,
    answer_round bigint not null,
    answer_total bytea not null,
    entry_epoch bigint not null,
    entry_n bigint not null,
    entry_version text not null,
    entry_round bigint not null,
    entry_total bytea not null,
    place bigint not null
) with (fillfactor = 50);
create index stream_of_space on guardband.stream (space, stream);
create table guardband.pulse (
    stream text collate "C" primary key,
    space text collate "C" not null,
    task text collate "C" not null,
    last_seen double precision not null,
    seen_epoch bigint not null,
    config_version bigint not null,
    report text not null,
    reported_at double precision,
    sampled_at double precision
) with (fillfactor = 50);
create index pulse_of_space on guardband.pulse (space, stream);
create table guardband.epoch (
    space text collate "C" not null,
    epoch bigint not null,
    state text not null,
    opened_by text not null,
    opened_at double precision not null,
    closed_at double precision,
    streams bigint not null,
    streams_in bigint not null,
    streams_late bigint not null,
    tasks bigint not null,
    n bigint not null,
    round bigint not null,
    total bytea,
    sha256 text,
    logdet double precision,
    primary key (space, epoch)
);
create table guardband.entry (
    space text collate "C" not null,
    epoch bigint not null,
    stream text collate "C" not null,
    task text not null,
    n bigint not null,
    version text not null,
    primary key (space, epoch, stream)
);
create table guardband.audit (
    seq bigint generated always as identity primary key,
    at double precision not null,
    space text collate "C" not null,
    who text not null,
    what text not null,
    detail text not null
);
create index audit_of_space on guardband.audit (space, seq);
create table guardband.sample (
    space text collate "C" not null,
    stream text collate "C" not null,
    level bigint not null,
    slot bigint not null,
    task text not null,
    at double precision not null,
    body text not null,
    primary key (space, stream, level, slot)
);
create index sample_by_time on guardband.sample (space, level, at, stream);
create table guardband.token (
    token text collate "C" primary key,
    sha256 text not null,
    role text not null,
    space text,
    task text,
    note text not null,
    created_at double precision not null,
    revoked_at double precision
);
"""

# Append only: step k leads from format k to k + 1. Semicolons end statements, and nothing else.
VERSION_2 = "alter table guardband.epoch add column excluded bigint not null default 0"

MIGRATIONS = (VERSION_1, VERSION_2)
FORMAT = len(MIGRATIONS)


def migrate(work: Work) -> None:
    """Bring the tables to this program's format, once, however many replicas start together.

    To be called in a transaction: either all steps are taken, or none.
    """
    work.write("set local lock_timeout = 0")
    work.write("set local statement_timeout = 0")
    work.ask("select pg_advisory_xact_lock(%s, 0)", MIGRATING)
    # Not `create schema if not exists`: that needs a right which the owner of an existing schema
    # need not have.
    ((known,),) = work.ask("select to_regnamespace(%s) is not null", SCHEMA)
    if not known:
        work.write(f"create schema {SCHEMA}")
    found = _format_of(work)
    if found > FORMAT:
        raise StoreError(
            f"the database has format {found}, and this version of guardband reads up to "
            f"{FORMAT}: upgrade guardband."
        )
    for step in MIGRATIONS[found:]:
        for statement in step.split(";"):
            if statement.strip():
                work.write(statement)
    if found < FORMAT:
        work.write(
            f"insert into {SCHEMA}.meta values ('format', %s) "
            "on conflict (key) do update set value = excluded.value",
            str(FORMAT),
        )


def _format_of(work: Work) -> int:
    """Return how many steps the database has taken."""
    ((table,),) = work.ask("select to_regclass(%s) is not null", f"{SCHEMA}.meta")
    if not table:
        return 0
    row = work.ask(f"select value from {SCHEMA}.meta where key = 'format'")
    if not row:
        raise StoreError(
            f"the schema {SCHEMA!r} of this database is not guardband's: its table meta names no "
            "format. Give guardband a database of its own."
        )
    return int(row[0][0])
