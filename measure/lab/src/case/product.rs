//! The databases a load runs on, and what a setting means for their commits.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    Postgres,
    Mariadb,
    Redis,
    Rocksdb,
    Sqlite,
    Lmdb,
    Etcd,
    /// Of any program.
    Files,
}

impl Product {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Product::Postgres => "PostgreSQL",
            Product::Mariadb => "MariaDB",
            Product::Redis => "Redis",
            Product::Rocksdb => "RocksDB",
            Product::Sqlite => "SQLite",
            Product::Lmdb => "LMDB",
            Product::Etcd => "etcd",
            Product::Files => "Files",
        }
    }

    /// Of `seawall run` and `seawall mount`.
    pub fn preset(self) -> &'static str {
        match self {
            Product::Postgres => "postgres",
            Product::Mariadb => "mariadb",
            Product::Redis => "redis",
            Product::Rocksdb => "rocksdb",
            Product::Sqlite => "sqlite",
            Product::Lmdb => "lmdb",
            Product::Etcd => "etcd",
            Product::Files => "any",
        }
    }

    /// Whether every turn begins with an empty database: what a turn wrote would make the next one's work another.
    pub fn begins_empty(self) -> bool {
        !matches!(self, Product::Postgres | Product::Mariadb)
    }

    /// What a commit survives by these settings, if that is less than a durable one.
    pub fn undurable(self, setting: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
        const NONE: &str = "none";
        const LATE: &str = "asynchronous commit loses the last moments";
        // MariaDB takes both for the same.
        let value = |name: &str| setting(name).or_else(|| setting(&name.replace('-', "_")));
        let is = |name: &str, values: &[&str]| value(name).is_some_and(|v| values.contains(&v.as_str()));
        match self {
            Product::Postgres if is("fsync", &["off"]) => Some(NONE),
            Product::Postgres if is("synchronous_commit", &["off"]) => Some(LATE),
            Product::Mariadb if is("innodb-flush-log-at-trx-commit", &["0", "2"]) => Some(LATE),
            Product::Redis if is("appendfsync", &["no"]) => Some(NONE),
            Product::Redis if is("appendfsync", &["everysec"]) => Some(LATE),
            Product::Rocksdb | Product::Lmdb | Product::Files if is("sync", &["0"]) => Some(NONE),
            Product::Sqlite if is("synchronous", &["off"]) => Some(NONE),
            Product::Etcd if is("unsafe-no-fsync", &["true"]) => Some(NONE),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_durable_is_called_that() {
        let said = |product: Product, name: &str, value: &str| {
            product.undurable(|asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(said(Product::Postgres, "fsync", "off"), Some("none"));
        assert_eq!(said(Product::Postgres, "fsync", "on"), None);
        assert!(said(Product::Mariadb, "innodb-flush-log-at-trx-commit", "0").is_some());
        assert!(said(Product::Mariadb, "innodb_flush_log_at_trx_commit", "0").is_some());
        assert_eq!(said(Product::Mariadb, "innodb-flush-log-at-trx-commit", "1"), None);
        assert_eq!(said(Product::Redis, "appendfsync", "no"), Some("none"));
        assert_eq!(said(Product::Rocksdb, "sync", "0"), Some("none"));
        assert_eq!(said(Product::Sqlite, "synchronous", "off"), Some("none"));
        assert_eq!(said(Product::Etcd, "unsafe-no-fsync", "true"), Some("none"));
    }
}
