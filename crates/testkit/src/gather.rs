//! Streams to their ends, by fragments and by rows as they stand.

use model::flat::FlatRow;
use model::{Fragment, FragmentReader, Next};

/// A reader that stops giving rows as they stand is asked for a fragment in between: after so many rows at the latest.
const AT_ONCE: usize = 3;

/// What was gathered.
#[derive(Debug, Default)]
pub struct Gathered {
    /// All of it.
    pub fragments: Vec<Fragment>,
    /// How many of them were rows given as they stand.
    pub flat: usize,
}

/// Reads a stream to its end, [with rows as they stand](gather_flat) or without.
///
/// # Errors
/// Those of the reader.
pub async fn gather<R: FragmentReader>(reader: &mut R, is_flat: bool) -> Result<Vec<Fragment>, R::Error> {
    if is_flat {
        return gather_flat(reader).await.map(|gathered| gathered.fragments);
    }
    let mut fragments = Vec::new();
    while let Some(fragment) = reader.next().await? {
        fragments.push(fragment);
    }
    Ok(fragments)
}

/// Reads a stream to its end, rows as they stand where it gives such.
///
/// # Errors
/// Those of the reader.
///
/// # Panics
/// If a row that is given as it stands is none, or is known as a usual one and is not.
pub async fn gather_flat<R: FragmentReader>(reader: &mut R) -> Result<Gathered, R::Error> {
    let (mut gathered, mut place) = (Gathered::default(), Fragment::default());
    loop {
        let mut left = AT_ONCE;
        reader.pop_flat(&mut |row: FlatRow<'_>| {
            let mut fragment = Fragment::default();
            row.decode(&mut fragment).expect("a row stands there");
            assert!(!row.is_usual() || model::flat::is_usual(&fragment), "{fragment:?}");
            gathered.fragments.push(fragment);
            gathered.flat += 1;
            left -= 1;
            left > 0
        });
        match reader.pop(&mut place)? {
            Next::Fragment => gathered.fragments.push(std::mem::take(&mut place)),
            Next::Fill => reader.fill().await?,
            Next::End => return Ok(gathered),
        }
    }
}
