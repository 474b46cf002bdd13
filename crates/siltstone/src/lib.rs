//! A wide-column database over the SSTables of Cassandra and ScyllaDB: library and command.
