//! Record batches inside a message.

use bytes::{Bytes, BytesMut};

/// The records of one partition: record batches, one behind the other, as bytes that nobody copies.
///
/// Decoded, it is one slice of the frame. To be encoded, it may be many slices, for instance one per batch; they are
/// written in order. Two values are equal if their bytes are, however they are cut.
#[derive(Clone, Debug, Default)]
pub struct Records(Vec<Bytes>);

impl Records {
    /// Records from consecutive slices.
    pub fn new(slices: Vec<Bytes>) -> Self {
        Self(slices)
    }

    /// Bytes in all slices together.
    pub fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slices in order.
    pub fn slices(&self) -> &[Bytes] {
        &self.0
    }

    /// All bytes as one slice; copies only if there are several.
    pub fn into_bytes(mut self) -> Bytes {
        if self.0.len() <= 1 {
            return self.0.pop().unwrap_or_default();
        }
        let mut all = BytesMut::with_capacity(self.len());
        for slice in &self.0 {
            all.extend_from_slice(slice);
        }
        all.freeze()
    }

    fn byte_iter(&self) -> impl Iterator<Item = &u8> {
        self.0.iter().flat_map(|slice| slice.iter())
    }
}

impl From<Bytes> for Records {
    fn from(bytes: Bytes) -> Self {
        Self(vec![bytes])
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.byte_iter().eq(other.byte_iter())
    }
}

impl Eq for Records {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_however_cut() {
        let whole = Records::from(Bytes::from_static(b"abcdef"));
        let cut = Records::new(vec![
            Bytes::from_static(b"ab"),
            Bytes::new(),
            Bytes::from_static(b"cdef"),
        ]);
        assert_eq!(whole, cut);
        assert_eq!(cut.len(), 6);
        assert_eq!(cut.into_bytes(), "abcdef");
        assert_ne!(whole, Records::from(Bytes::from_static(b"abcdeg")));
        assert!(Records::default().is_empty());
    }

    #[test]
    fn one_slice_is_not_copied() {
        let bytes = Bytes::from(vec![1; 10]);
        assert_eq!(Records::from(bytes.clone()).into_bytes().as_ptr(), bytes.as_ptr());
    }
}
