//! What the library warns of, as notes on stderr.
//!
//! ```text
//! siltstone: a compaction has failed (table: /data/ks/t-1f…, error: there is no room)
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::note;

/// Tells all warnings from here on, each once: what is so of a table is so on each of its shards.
pub(crate) fn tell() {
    // Nobody else has said who listens.
    drop(tracing::subscriber::set_global_default(Warnings::default()));
}

#[derive(Default)]
struct Warnings {
    told: Mutex<BTreeSet<String>>,
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::WARN
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut words = Words::default();
        event.record(&mut words);
        let text = words.in_words();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(text.clone()) {
            note(&text);
        }
    }

    // Spans are not enabled.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A warning, and the values beside it.
#[derive(Default)]
struct Words {
    message: String,
    values: String,
}

impl Words {
    fn in_words(self) -> String {
        if self.values.is_empty() { self.message } else { format!("{} ({})", self.message, self.values) }
    }

    fn put(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        let begin = if self.values.is_empty() { "" } else { ", " };
        match field.name() {
            "message" => self.message.push_str(&value.to_string()),
            name => self.values.push_str(&format!("{begin}{name}: {value}")),
        }
    }
}

impl Visit for Words {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format_args!("{value:?}"));
    }
}
