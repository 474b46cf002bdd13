//! A change of a table that others wait for the end of: all of them are woken by it, whether or not each goes on at once.

use std::sync::{Mutex, PoisonError};

use async_channel::{Receiver, Sender};

/// Whether a table is being changed. One change goes on at a time.
#[derive(Debug, Default)]
pub(super) struct Change(Mutex<Option<Receiver<()>>>);

/// A change, until it is dropped.
#[derive(Debug)]
pub(super) struct Changing<'a> {
    change: &'a Change,
    /// Those who wait have the other end.
    _ends: Sender<()>,
}

impl Change {
    /// Begins one, once the one before is over.
    pub(super) fn begin(&self) -> Changing<'_> {
        let (ends, end) = async_channel::bounded(1);
        self.set(Some(end));
        Changing { change: self, _ends: ends }
    }

    /// Waits until there is none, if there is one.
    pub(super) async fn over(&self) {
        let end = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(end) = end {
            let _never_sent = end.recv().await;
        }
    }

    fn set(&self, end: Option<Receiver<()>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = end;
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        // Who comes from now on does not wait; who waits is woken when the sender goes.
        self.change.set(None);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn all_go_on_whoever_does_first() {
        let change = Change::default();
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(change.over()).poll(&mut context).is_ready());
        let changing = change.begin();
        let (mut first, mut second) = (pin!(change.over()), pin!(change.over()));
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending());
        drop(changing);
        assert!(second.poll(&mut context).is_ready(), "the first one does not stand in front of it");
        assert!(first.poll(&mut context).is_ready());
    }
}
