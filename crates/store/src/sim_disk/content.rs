//! The bytes of a file, in pages that are shared until one of those who have them writes: what readers see and what is durable
//! is mostly the same, and a power cut takes a copy of everything.

use std::sync::{Arc, LazyLock};

/// As a block of direct IO, so that what the store writes is whole pages.
const PAGE_BYTES: usize = 4096;

type Page = Arc<[u8; PAGE_BYTES]>;

static ZEROS: LazyLock<Page> = LazyLock::new(|| Arc::new([0; PAGE_BYTES]));

/// Some bytes. Behind the last of them, its page is all zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pages: Vec<Page>,
    len: usize,
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        let mut content = Self::default();
        content.write(0, bytes);
        content
    }
}

impl Content {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }

    /// Cuts it off, or lengthens it with zeros.
    pub(super) fn resize(&mut self, len: usize) {
        self.pages
            .resize_with(len.div_ceil(PAGE_BYTES), || Arc::clone(&ZEROS));
        let used = len % PAGE_BYTES;
        if len < self.len
            && used > 0
            && let Some(last) = self.pages.last_mut()
        {
            Arc::make_mut(last)[used..].fill(0);
        }
        self.len = len;
    }

    /// Fills `buf` from a position. False if there are not that many bytes.
    pub(super) fn read(&self, position: usize, buf: &mut [u8]) -> bool {
        if position.checked_add(buf.len()).is_none_or(|end| end > self.len) {
            return false;
        }
        let mut rest = buf;
        for (page, within) in parts(position, rest.len()) {
            let (part, behind) = rest.split_at_mut(within.len());
            part.copy_from_slice(&self.pages[page][within]);
            rest = behind;
        }
        true
    }

    /// Writes bytes at a position; what lies between the end and there becomes zeros.
    pub(super) fn write(&mut self, position: usize, bytes: &[u8]) {
        self.resize(self.len.max(position + bytes.len()));
        let mut rest = bytes;
        for (page, within) in parts(position, bytes.len()) {
            let (part, behind) = rest.split_at(within.len());
            match part.try_into() {
                Ok(whole) => self.pages[page] = Arc::new(whole),
                Err(_) => Arc::make_mut(&mut self.pages[page])[within].copy_from_slice(part),
            }
            rest = behind;
        }
    }

    /// The same, sharing whole pages.
    pub(super) fn write_shared(&mut self, position: usize, other: &Self) {
        if !position.is_multiple_of(PAGE_BYTES) {
            return self.write(position, &other.to_vec());
        }
        self.resize(self.len.max(position + other.len));
        let (first, whole) = (position / PAGE_BYTES, other.len / PAGE_BYTES);
        self.pages[first..first + whole].clone_from_slice(&other.pages[..whole]);
        if let Some(last) = other.pages.get(whole) {
            self.write(position + whole * PAGE_BYTES, &last[..other.len % PAGE_BYTES]);
        }
    }
}

/// The pages that some bytes are in, and where in each.
fn parts(position: usize, len: usize) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
    let end = position + len;
    let mut at = position;
    std::iter::from_fn(move || {
        let (page, from) = (at / PAGE_BYTES, at % PAGE_BYTES);
        let upto = PAGE_BYTES.min(from + end - at);
        at += upto - from;
        (from < upto).then_some((page, from..upto))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim_disk::Rng;

    /// The same with a plain vector, step for step.
    #[test]
    fn it_holds_what_a_vector_would() {
        let (mut rng, mut content, mut vector) = (Rng::new(1), Content::default(), Vec::new());
        let mut copies = Vec::new();
        for step in 0..2_000u64 {
            let page = rng.below(5) as usize * PAGE_BYTES;
            let position = page + [0, rng.below(PAGE_BYTES as u64) as usize][rng.below(2) as usize];
            let len = [PAGE_BYTES, 2 * PAGE_BYTES, rng.below(9_000) as usize][rng.below(3) as usize];
            let bytes = vec![step as u8 | 1; len];
            match rng.below(8) {
                0 => {
                    content.resize(len);
                    vector.resize(len, 0);
                }
                1 => copies.push((content.clone(), vector.clone())),
                which => {
                    match which {
                        2..5 => content.write(position, &bytes),
                        _ => content.write_shared(position, &Content::from(&bytes[..])),
                    }
                    vector.resize(vector.len().max(position + len), 0);
                    vector[position..position + len].copy_from_slice(&bytes);
                }
            }
            assert!(content.to_vec() == vector, "step {step}");
        }
        assert!(copies.iter().all(|(content, vector)| content.to_vec() == *vector));
        assert!(!content.read(vector.len(), &mut [0]) && content.read(vector.len(), &mut []));
    }
}
