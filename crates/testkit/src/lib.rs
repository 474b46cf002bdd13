//! What tests share: fixtures, generators, golden texts. Never shipped.
