//! Which views are read, and what to know of them.

use crate::block_cache::RELATION;
use crate::recovery::REDO;

/// A view. The query gives its item's name and the row as JSON.
pub struct View {
    pub kind: &'static str,
    pub sql: &'static str,
    /// The same without the texts of others, should one of them be none in any encoding.
    pub bare: Option<&'static str>,
    /// Since which version, and before which.
    pub versions: (u32, u32),
    /// At most so many rows: an item that is not among them may still exist.
    pub limit: Option<usize>,
    /// The extension's view it needs: without it the question would be an error in the server's log.
    pub needs: Option<&'static str>,
    /// What is missing without it, and what to do; nothing if that is no loss.
    pub without: &'static str,
}

impl View {
    pub fn is_of(&self, version: u32) -> bool {
        version >= self.versions.0 && version < self.versions.1
    }
}

const STATEMENTS: usize = 300;
const TABLES: usize = 300;

/// What is usual: of any version, all rows, and no loss where the view is missing.
const PLAIN: View =
    View { kind: "", sql: "", bare: None, versions: (0, u32::MAX), limit: None, needs: None, without: "" };

/// Which file is which table's or index's, of this database: read where there is a block cache.
pub const RELATIONS: View = View {
    kind: RELATION,
    sql: "SELECT pg_relation_filepath(c.oid), jsonb_build_object('relation', n.nspname || '.' || c.relname)::text \
          FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
          WHERE c.relkind IN ('r', 'i', 'm', 't', 'S') AND pg_relation_filepath(c.oid) IS NOT NULL \
          ORDER BY c.relpages DESC, c.oid LIMIT 300",
    limit: Some(TABLES),
    without: "Files in the block cache have no names of tables.",
    ..PLAIN
};

/// All that are always read.
pub const VIEWS: [View; 11] = [
    View {
        kind: "pg_stat_database",
        sql: "SELECT coalesce(datname, '(shared objects)'), to_jsonb(s)::text FROM pg_stat_database s",
        without: "The load profile is missing.",
        ..PLAIN
    },
    View { kind: "pg_stat_bgwriter", sql: "SELECT '', to_jsonb(s)::text FROM pg_stat_bgwriter s", ..PLAIN },
    View {
        kind: "pg_stat_checkpointer",
        sql: "SELECT '', to_jsonb(s)::text FROM pg_stat_checkpointer s",
        versions: (170_000, u32::MAX),
        ..PLAIN
    },
    View {
        kind: "pg_stat_wal",
        sql: "SELECT '', to_jsonb(s)::text FROM pg_stat_wal s",
        versions: (140_000, u32::MAX),
        without: "Redo size and full-page images are missing.",
        ..PLAIN
    },
    View {
        kind: "pg_stat_io",
        sql: "SELECT concat_ws(' / ', backend_type, object, context), to_jsonb(s)::text FROM pg_stat_io s \
              WHERE coalesce(reads, 0) + coalesce(writes, 0) + coalesce(extends, 0) + coalesce(fsyncs, 0) > 0",
        versions: (160_000, u32::MAX),
        ..PLAIN
    },
    View {
        kind: "pg_stat_statements",
        sql: "SELECT concat_ws('.', queryid, dbid, userid), \
              (to_jsonb(s) - 'query' || jsonb_build_object('query', left(query, 1000)))::text \
              FROM pg_stat_statements s ORDER BY coalesce(to_jsonb(s)->>'total_exec_time', to_jsonb(s)->>'total_time')::float8 \
              DESC LIMIT 300",
        bare: Some(
            "SELECT concat_ws('.', queryid, dbid, userid), (to_jsonb(s) - 'query' || \
             jsonb_build_object('query', '(its text is not of the database''s encoding)'))::text \
             FROM pg_stat_statements(false) s \
             ORDER BY coalesce(to_jsonb(s)->>'total_exec_time', to_jsonb(s)->>'total_time')::float8 DESC LIMIT 300",
        ),
        limit: Some(STATEMENTS),
        needs: Some("pg_stat_statements"),
        without: "Statements by time are missing: shared_preload_libraries = 'pg_stat_statements', restart, \
                  CREATE EXTENSION pg_stat_statements in this database.",
        ..PLAIN
    },
    View {
        kind: "pg_wait_sampling",
        sql: "SELECT coalesce(event_type, '') || '/' || coalesce(event, ''), jsonb_build_object('count', sum(count), \
              'period_ms', current_setting('pg_wait_sampling.profile_period'))::text FROM pg_wait_sampling_profile \
              GROUP BY event_type, event",
        needs: Some("pg_wait_sampling_profile"),
        ..PLAIN
    },
    View {
        kind: "pg_statio_tables",
        sql: "SELECT schemaname || '.' || relname, to_jsonb(s)::text FROM pg_statio_all_tables s \
              ORDER BY coalesce(heap_blks_read, 0) + coalesce(idx_blks_read, 0) DESC, relid LIMIT 300",
        limit: Some(TABLES),
        ..PLAIN
    },
    View {
        kind: "pg_stat_tables",
        sql: "SELECT schemaname || '.' || relname, to_jsonb(s)::text FROM pg_stat_all_tables s \
              ORDER BY n_tup_ins + n_tup_upd + n_tup_del DESC, relid LIMIT 300",
        limit: Some(TABLES),
        ..PLAIN
    },
    View {
        kind: REDO.0,
        sql: "SELECT '', jsonb_build_object('redo_bytes', \
              pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn))::text FROM pg_control_checkpoint() \
              WHERE NOT pg_is_in_recovery()",
        without: "The cost of a crash is missing.",
        ..PLAIN
    },
    View {
        kind: "settings",
        sql: "SELECT '', jsonb_object_agg(name, concat_ws(' ', setting, unit))::text FROM pg_settings",
        ..PLAIN
    },
];
