//! Keeps bytes: one shared write-ahead log for all partitions and for the broker's own state.
