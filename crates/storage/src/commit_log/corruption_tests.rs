//! Every byte of a log flipped: never a wrong record.
