//! A memtable gives what was written, whichever way it is read.
