//! What sessions are doing at this instant: the process list, and who waits for a row lock of another.
//!
//! The process list's state is coarse: what is not a wait it names counts as on a CPU. Where the consumer
//! `events_waits_current` of `performance_schema` is on, the wait under way is seen instead.

use crate::model::Sample;

/// Sessions in a statement, the server's own threads left out that wait for work.
pub const SQL: &str = "SELECT IF(p.USER IN ('system user', 'event_scheduler'), 0, 1), \
     IF(t.trx_mysql_thread_id IS NULL, 'state', 'lock'), COALESCE(p.STATE, ''), COUNT(*) \
     FROM information_schema.PROCESSLIST p LEFT JOIN \
     (SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT') t \
     ON t.trx_mysql_thread_id = p.ID \
     WHERE p.ID <> CONNECTION_ID() AND p.COMMAND NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Slave_IO') GROUP BY 1, 2, 3";

/// The same with the waits of `performance_schema`.
pub const SQL_WITH_WAITS: &str = "SELECT IF(p.USER IN ('system user', 'event_scheduler'), 0, 1), \
     IF(w.EVENT_NAME IS NOT NULL, 'wait', IF(t.trx_mysql_thread_id IS NULL, 'state', 'lock')), \
     COALESCE(w.EVENT_NAME, p.STATE, ''), COUNT(*) \
     FROM information_schema.PROCESSLIST p LEFT JOIN \
     (SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT') t \
     ON t.trx_mysql_thread_id = p.ID \
     LEFT JOIN (SELECT th.PROCESSLIST_ID, MAX(c.EVENT_NAME) AS EVENT_NAME FROM performance_schema.threads th \
     JOIN performance_schema.events_waits_current c ON c.THREAD_ID = th.THREAD_ID \
     WHERE c.TIMER_END IS NULL AND c.EVENT_NAME <> 'idle' GROUP BY th.PROCESSLIST_ID) w \
     ON w.PROCESSLIST_ID = p.ID AND t.trx_mysql_thread_id IS NULL \
     WHERE p.ID <> CONNECTION_ID() AND p.COMMAND NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Slave_IO') GROUP BY 1, 2, 3";

/// Whether that consumer is on.
pub const ARE_WAITS_SEEN: &str = "SELECT COUNT(*) FROM performance_schema.setup_consumers \
     WHERE NAME = 'events_waits_current' AND ENABLED = 'YES'";

/// A row of either.
pub fn sample(at_ms: i64, row: &[String]) -> Option<Sample> {
    let [foreground, kind, what, sessions] = row else { return None };
    Some(Sample {
        at_ms,
        foreground: foreground == "1",
        wait_type: format!("mariadb {kind}"),
        wait_event: what.clone(),
        query_id: 0,
        sessions: sessions.parse().ok()?,
    })
}
