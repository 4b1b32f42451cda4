//! A frame to send, as a list of byte slices for one vectored write.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

/// Bytes in pieces. As a [`Buf`] it goes straight into a vectored write, piece by piece without copying.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    pieces: VecDeque<Bytes>,
    length: usize,
}

impl Chunks {
    /// Appends a piece; an empty one is dropped.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.length += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Appends all pieces of another, for instance the next response on the same connection.
    pub fn append(&mut self, mut other: Self) {
        self.length += other.length;
        self.pieces.append(&mut other.pieces);
    }

    /// Bytes in all pieces together.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The pieces in order; none is empty.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Bytes> {
        self.pieces.iter()
    }

    /// All bytes as one slice; copies if there are several pieces.
    pub fn to_bytes(&self) -> Bytes {
        if self.pieces.len() == 1 {
            return self.pieces[0].clone();
        }
        let mut all = BytesMut::with_capacity(self.length);
        for piece in &self.pieces {
            all.extend_from_slice(piece);
        }
        all.freeze()
    }
}

impl Buf for Chunks {
    fn remaining(&self) -> usize {
        self.length
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map(Bytes::as_ref).unwrap_or_default()
    }

    fn advance(&mut self, count: usize) {
        assert!(count <= self.length, "advance within the bytes that are left");
        self.length -= count;
        let mut left = count;
        while left > 0 {
            let Some(front) = self.pieces.front_mut() else {
                return;
            };
            if left < front.len() {
                front.advance(left);
                return;
            }
            left -= front.len();
            self.pieces.pop_front();
        }
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(piece);
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks() -> Chunks {
        let mut chunks = Chunks::default();
        for piece in [&b"abc"[..], b"", b"de", b"f"] {
            chunks.push(Bytes::from_static(piece));
        }
        chunks
    }

    #[test]
    fn advances_across_pieces() {
        for count in 0..=6 {
            let mut chunks = chunks();
            chunks.advance(count);
            assert_eq!(chunks.remaining(), 6 - count);
            assert_eq!(chunks.to_bytes(), b"abcdef"[count..]);
            assert_eq!(chunks.iter().filter(|piece| piece.is_empty()).count(), 0);
        }
    }

    #[test]
    fn lends_as_many_slices_as_asked_for() {
        let chunks = chunks();
        let mut slices = [IoSlice::new(&[]); 2];
        assert_eq!(chunks.chunks_vectored(&mut slices), 2);
        assert_eq!((&*slices[0], &*slices[1]), (&b"abc"[..], &b"de"[..]));
        let mut slices = [IoSlice::new(&[]); 9];
        assert_eq!(chunks.chunks_vectored(&mut slices), 3);
    }

    #[test]
    fn appends() {
        let mut both = chunks();
        both.append(chunks());
        assert_eq!(
            (both.len(), both.to_bytes()),
            (12, Bytes::from_static(b"abcdefabcdef"))
        );
    }
}
