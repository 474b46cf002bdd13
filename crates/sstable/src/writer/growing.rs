//! A component that is begun once there is enough of it: most SSTables are too small for one.

use super::seal::Sealer;
use crate::Result;
use crate::appending::Appending;
use crate::component::Component;

/// A file to be, or one that has begun.
pub(super) struct Growing {
    component: Component,
    file: Option<Appending>,
}

impl std::fmt::Debug for Growing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Growing").field("component", &self.component).finish_non_exhaustive()
    }
}

impl Growing {
    /// Of which nothing is there.
    pub(super) fn new(component: Component) -> Growing {
        Growing { component, file: None }
    }

    /// Whether something of it was written.
    pub(super) fn has_begun(&self) -> bool {
        self.file.is_some()
    }

    /// Begins to append.
    ///
    /// # Errors
    /// What the operating system says.
    pub(super) async fn append(&mut self, sealer: &mut Sealer, bytes: Vec<u8>) -> Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => Appending::new(sealer.create(self.component.clone()).await?),
        };
        file.append(bytes).await?;
        self.file = Some(file);
        Ok(())
    }

    /// Appends the rest, and has the sealer make all of it durable.
    ///
    /// # Errors
    /// What the operating system says.
    pub(super) async fn finish(mut self, sealer: &mut Sealer, rest: Vec<u8>) -> Result<()> {
        self.append(sealer, rest).await?;
        let file = self.file.take().expect("it was appended to");
        sealer.put(file.end().await?);
        Ok(())
    }
}
