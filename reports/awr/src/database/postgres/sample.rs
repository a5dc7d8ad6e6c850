//! What sessions are doing at this instant: `pg_stat_activity`, grouped by the server.

use crate::model::Sample;

/// Sessions in a statement, and the server's own processes that wait for anything but work.
pub const SQL: &str = "SELECT backend_type = 'client backend', coalesce(wait_event_type, ''), coalesce(wait_event, ''), \
     coalesce(query_id, 0), count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND \
     (state = 'active' OR backend_type <> 'client backend' AND wait_event_type IS DISTINCT FROM 'Activity') \
     AND application_name <> 'seawall awr' GROUP BY 1, 2, 3, 4";

/// Before version 14 sessions do not say which statement they execute.
pub const SQL_WITHOUT_STATEMENTS: &str = "SELECT backend_type = 'client backend', coalesce(wait_event_type, ''), \
     coalesce(wait_event, ''), 0, count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND \
     (state = 'active' OR backend_type <> 'client backend' AND wait_event_type IS DISTINCT FROM 'Activity') \
     AND application_name <> 'seawall awr' GROUP BY 1, 2, 3, 4";

/// A row of either.
pub fn sample(at_ms: i64, row: &[Option<String>]) -> Option<Sample> {
    let [foreground, wait_type, wait_event, query, sessions] = row else { return None };
    Some(Sample {
        at_ms,
        foreground: foreground.as_deref() == Some("t"),
        wait_type: wait_type.clone().unwrap_or_default(),
        wait_event: wait_event.clone().unwrap_or_default(),
        query_id: query.as_deref()?.parse().ok()?,
        sessions: sessions.as_deref()?.parse().ok()?,
    })
}
