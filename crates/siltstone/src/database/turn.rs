//! One after the other, across threads: who waits for its turn does not block a thread.

use async_channel::{Receiver, Sender};

/// Something that one at a time may do.
#[derive(Debug)]
pub(super) struct Turn {
    give: Sender<()>,
    take: Receiver<()>,
}

/// Whoever has this has the turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Taken(Sender<()>);

impl Turn {
    /// Nobody has it.
    pub(super) fn new() -> Turn {
        let (give, take) = async_channel::bounded(1);
        drop(Taken(give.clone()));
        Turn { give, take }
    }

    /// Waits for it.
    pub(super) async fn take(&self) -> Taken {
        self.take.recv().await.expect("the other end is beside it");
        Taken(self.give.clone())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.try_send(()).expect("there is room for the one turn that was taken");
    }
}
