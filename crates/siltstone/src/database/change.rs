//! A change of a table that others wait for the end of: all of them are woken by it, whether or not each goes on at once.

use std::sync::{Mutex, PoisonError};

use async_channel::{Receiver, Sender};

use crate::{Error, Result};

/// Whether a table is being changed. One change goes on at a time.
#[derive(Debug, Default)]
pub(super) struct Change(Mutex<State>);

#[derive(Clone, Debug, Default)]
enum State {
    #[default]
    Over,
    UnderWay(Receiver<()>),
    /// Nobody brings it to its end, and shards that it keeps from writing stay so.
    CutOff,
}

/// A change, until it is ended. One that is dropped before was cut off.
#[derive(Debug)]
pub(super) struct Changing<'a> {
    change: &'a Change,
    is_ended: bool,
    /// Those who wait have the other end.
    _ends: Sender<()>,
}

impl Change {
    /// Begins one, once the one before is over.
    pub(super) fn begin(&self) -> Changing<'_> {
        let (ends, end) = async_channel::bounded(1);
        self.set(State::UnderWay(end));
        Changing { change: self, is_ended: false, _ends: ends }
    }

    /// Waits until there is none, if there is one.
    ///
    /// # Errors
    /// [`Error::Closed`] if it was cut off.
    pub(super) async fn over(&self) -> Result<()> {
        if let State::UnderWay(end) = self.state() {
            let _never_sent = end.recv().await;
        }
        match self.state() {
            State::CutOff => {
                Err(Error::Closed("a shard has panicked while the table was changed".to_owned()))
            }
            State::Over | State::UnderWay(_) => Ok(()),
        }
    }

    fn state(&self) -> State {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Changing<'_> {
    /// It is done, or all is as it was.
    pub(super) fn end(mut self) {
        self.is_ended = true;
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        // Who comes from now on does not wait; who waits is woken when the sender goes.
        self.change.set(if self.is_ended { State::Over } else { State::CutOff });
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

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
        changing.end();
        assert!(second.poll(&mut context).is_ready(), "the first one does not stand in front of it");
        assert!(first.poll(&mut context).is_ready());
    }

    /// As with the shard that it was made on.
    #[test]
    fn nobody_waits_for_one_that_was_cut_off() {
        let change = Change::default();
        let mut context = Context::from_waker(Waker::noop());
        let changing = change.begin();
        let mut over = pin!(change.over());
        assert!(over.as_mut().poll(&mut context).is_pending());
        drop(changing);
        assert!(matches!(over.poll(&mut context), Poll::Ready(Err(Error::Closed(_)))));
        assert!(matches!(pin!(change.over()).poll(&mut context), Poll::Ready(Err(Error::Closed(_)))));
    }
}
