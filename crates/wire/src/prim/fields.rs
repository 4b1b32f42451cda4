//! How each type of the protocol lies on the wire.

use bytes::Bytes;

use super::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Reader, Records, Uuid, Writer};

/// Anything that can be a field of a message: numbers, text, bytes, arrays, structs.
///
/// The encoding (compact or not) is a property of the reader or writer, set by the whole message from its version.
pub trait Field: Sized {
    /// Reads a value.
    ///
    /// # Errors
    /// Any [`DecodeErrorKind`]; the error names the field and the position.
    fn read(r: &mut Reader, version: i16) -> Result<Self, DecodeError>;

    /// Writes the value.
    ///
    /// # Errors
    /// [`EncodeError`] if the version cannot carry it.
    fn write(&self, w: &mut Writer, version: i16) -> Result<(), EncodeError>;
}

/// A field that has an encoding for null.
pub trait Nullable: Field {
    /// Reads a value or null.
    ///
    /// # Errors
    /// As [`Field::read`]
    fn read_or_null(r: &mut Reader, version: i16) -> Result<Option<Self>, DecodeError>;

    /// Writes a value or null.
    ///
    /// # Errors
    /// As [`Field::write`]
    fn write_or_null(value: Option<&Self>, w: &mut Writer, version: i16) -> Result<(), EncodeError>;
}

/// A struct of the protocol. As a nullable field it is preceded by a byte: 1, or -1 for null.
pub trait Struct: Field {}

/// Reads a field that is null in some versions; `allowed` says whether in this one.
///
/// # Errors
/// [`DecodeErrorKind::Null`], and as [`Field::read`]
pub fn read_nullable<T: Nullable>(
    r: &mut Reader,
    version: i16,
    allowed: bool,
) -> Result<Option<T>, DecodeError> {
    if allowed {
        T::read_or_null(r, version)
    } else {
        T::read(r, version).map(Some)
    }
}

/// Writes a field that is null in some versions; `allowed` says whether in this one.
///
/// # Errors
/// [`EncodeErrorKind::Null`], and as [`Field::write`]
pub fn write_nullable<T: Nullable>(
    value: Option<&T>,
    w: &mut Writer,
    version: i16,
    allowed: bool,
) -> Result<(), EncodeError> {
    match value {
        _ if allowed => T::write_or_null(value, w, version),
        Some(value) => value.write(w, version),
        None => Err(w.error(version, EncodeErrorKind::Null)),
    }
}

fn not_null<T: Nullable>(r: &mut Reader, version: i16) -> Result<T, DecodeError> {
    T::read_or_null(r, version)?.ok_or_else(|| r.error(DecodeErrorKind::Null))
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn read(r: &mut Reader, _version: i16) -> Result<Self, DecodeError> {
                Ok(Self::from_be_bytes(r.array()?))
            }

            fn write(&self, w: &mut Writer, _version: i16) -> Result<(), EncodeError> {
                w.put(&self.to_be_bytes());
                Ok(())
            }
        }
    )*};
}

numbers!(i8, i16, i32, i64, u16, f64);

impl Field for bool {
    fn read(r: &mut Reader, _version: i16) -> Result<Self, DecodeError> {
        Ok(r.array::<1>()? != [0])
    }

    fn write(&self, w: &mut Writer, _version: i16) -> Result<(), EncodeError> {
        w.put(&[u8::from(*self)]);
        Ok(())
    }
}

impl Field for Uuid {
    fn read(r: &mut Reader, _version: i16) -> Result<Self, DecodeError> {
        r.array()
    }

    fn write(&self, w: &mut Writer, _version: i16) -> Result<(), EncodeError> {
        w.put(self);
        Ok(())
    }
}

/// `Field` for a type whose null is a length.
macro_rules! lengthy {
    ($type:ty $(, $generic:ident)?) => {
        impl$(<$generic: Field>)? Field for $type {
            fn read(r: &mut Reader, version: i16) -> Result<Self, DecodeError> {
                not_null(r, version)
            }

            fn write(&self, w: &mut Writer, version: i16) -> Result<(), EncodeError> {
                Self::write_or_null(Some(self), w, version)
            }
        }
    };
}

lengthy!(String);
lengthy!(Bytes);
lengthy!(Records);
lengthy!(Vec<T>, T);

impl Nullable for String {
    fn read_or_null(r: &mut Reader, _version: i16) -> Result<Option<Self>, DecodeError> {
        r.length(true)?.map(|length| r.text(length as usize)).transpose()
    }

    fn write_or_null(value: Option<&Self>, w: &mut Writer, version: i16) -> Result<(), EncodeError> {
        w.put_length(value.map(Self::len), true, version)?;
        w.put(value.map(Self::as_bytes).unwrap_or_default());
        Ok(())
    }
}

impl Nullable for Bytes {
    fn read_or_null(r: &mut Reader, _version: i16) -> Result<Option<Self>, DecodeError> {
        r.length(false)?
            .map(|length| r.bytes(length as usize))
            .transpose()
    }

    fn write_or_null(value: Option<&Self>, w: &mut Writer, version: i16) -> Result<(), EncodeError> {
        w.put_length(value.map(Self::len), false, version)?;
        if let Some(value) = value {
            w.share(value);
        }
        Ok(())
    }
}

impl Nullable for Records {
    fn read_or_null(r: &mut Reader, version: i16) -> Result<Option<Self>, DecodeError> {
        Ok(Bytes::read_or_null(r, version)?.map(Self::from))
    }

    fn write_or_null(value: Option<&Self>, w: &mut Writer, version: i16) -> Result<(), EncodeError> {
        w.put_length(value.map(Self::len), false, version)?;
        for slice in value.map(Self::slices).unwrap_or_default() {
            w.share(slice);
        }
        Ok(())
    }
}

impl<T: Field> Nullable for Vec<T> {
    fn read_or_null(r: &mut Reader, version: i16) -> Result<Option<Self>, DecodeError> {
        r.elements(version)
    }

    fn write_or_null(value: Option<&Self>, w: &mut Writer, version: i16) -> Result<(), EncodeError> {
        w.put_length(value.map(Self::len), false, version)?;
        for element in value.map(Self::as_slice).unwrap_or_default() {
            element.write(w, version)?;
        }
        Ok(())
    }
}

impl<T: Struct> Nullable for T {
    fn read_or_null(r: &mut Reader, version: i16) -> Result<Option<Self>, DecodeError> {
        match i8::read(r, version)? {
            marker if marker < 0 => Ok(None),
            _ => Self::read(r, version).map(Some),
        }
    }

    fn write_or_null(value: Option<&Self>, w: &mut Writer, version: i16) -> Result<(), EncodeError> {
        let Some(value) = value else {
            return (-1i8).write(w, version);
        };
        1i8.write(w, version)?;
        value.write(w, version)
    }
}
