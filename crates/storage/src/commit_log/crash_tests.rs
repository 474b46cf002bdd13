//! Power cuts at every operation, and disks that fail: what was acknowledged is replayed, and nothing else.
