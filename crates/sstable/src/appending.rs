//! A new file with at most one append under way: who writes fills the next buffer meanwhile.

use runtime::{IoError, NewFile, Task};

use crate::Result;

/// A file to which buffers go, one after the other.
pub(crate) struct Appending {
    state: State,
    /// Bytes of the file, those that are being appended too.
    len: u64,
}

enum State {
    /// The file, and the buffer of the last append.
    Idle(NewFile, Vec<u8>),
    Busy(Task<std::result::Result<(NewFile, Vec<u8>), IoError>>),
    /// An append failed, and took the file with it.
    Failed,
}

impl Appending {
    /// To this file, which is empty.
    pub(crate) fn new(file: NewFile) -> Appending {
        Appending { state: State::Idle(file, Vec::new()), len: 0 }
    }

    /// Bytes of the file, those that are being appended too.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Waits until nothing is under way.
    ///
    /// # Errors
    /// What the operating system said of the last append.
    pub(crate) async fn idle(&mut self) -> Result<&NewFile> {
        Ok(self.settle().await?.0)
    }

    /// The file, once nothing is under way.
    ///
    /// # Errors
    /// What the operating system said of the last append.
    pub(crate) async fn end(mut self) -> Result<NewFile> {
        self.settle().await?;
        match self.state {
            State::Idle(file, _) => Ok(file),
            _ => unreachable!("nothing is under way"),
        }
    }

    /// Begins to append; an empty buffer to go on with.
    ///
    /// # Errors
    /// What the operating system said of the append before.
    pub(crate) async fn append(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let buffer = std::mem::take(self.settle().await?.1);
        self.len += bytes.len() as u64;
        if let State::Idle(mut file, _) = std::mem::replace(&mut self.state, State::Failed) {
            self.state = State::Busy(runtime::spawn(async move {
                let bytes = file.append(bytes).await?;
                Ok((file, bytes))
            }));
        }
        // The request begins.
        runtime::yield_now().await;
        Ok(buffer)
    }

    async fn settle(&mut self) -> Result<(&NewFile, &mut Vec<u8>)> {
        if let State::Busy(task) = &mut self.state {
            let done = task.await;
            self.state = State::Failed;
            let (file, buffer) = done?;
            self.state = State::Idle(file, buffer);
        }
        match &mut self.state {
            State::Idle(file, buffer) => Ok((file, buffer)),
            _ => panic!("after an error a writer is abandoned"),
        }
    }
}

impl std::fmt::Debug for Appending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Appending").field("len", &self.len).finish_non_exhaustive()
    }
}
