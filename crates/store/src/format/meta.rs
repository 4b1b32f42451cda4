//! META: what the whole folder is, in lines that a person can read.

use super::{ClusterId, FORMAT_VERSION};

/// Content of the META file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) version: u32,
    pub(crate) cluster: ClusterId,
    pub(crate) created_ms: i64,
}

/// Why META cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MetaError {
    NewerFormat(u32),
    Damaged(&'static str),
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// 16 bytes as Kafka writes uuids: URL-safe base64 without padding, 22 characters.
pub(crate) fn uuid_text(id: &ClusterId) -> String {
    let bits = u128::from_be_bytes(*id);
    let digit = |index: u32| {
        // 22 digits of 6 bits are 132: the last one carries two bits and four zeros.
        let shifted = if index == 21 {
            bits << 4
        } else {
            bits >> (122 - index * 6)
        };
        char::from(ALPHABET[(shifted & 63) as usize])
    };
    (0..22).map(digit).collect()
}

pub(crate) fn parse_uuid(text: &str) -> Option<ClusterId> {
    if text.len() != 22 {
        return None;
    }
    let mut bits = 0u128;
    for (index, byte) in text.bytes().enumerate() {
        let digit = ALPHABET.iter().position(|&letter| letter == byte)? as u128;
        bits = if index == 21 {
            (bits << 2) | (digit >> 4)
        } else {
            (bits << 6) | digit
        };
    }
    Some(bits.to_be_bytes())
}

/// Makes random bits a version 4 uuid whose text does not start with '-', as Kafka's own ids.
pub(crate) fn cluster_id_from(high: u64, low: u64) -> ClusterId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&high.to_be_bytes());
    id[8..].copy_from_slice(&low.to_be_bytes());
    id[6] = (id[6] & 0x0f) | 0x40;
    id[8] = (id[8] & 0x3f) | 0x80;
    if id[0] >> 2 == 62 {
        id[0] ^= 0x80;
    }
    id
}

impl Meta {
    pub(crate) fn encode(&self) -> String {
        let body = format!(
            "# Anabranch data folder. Do not edit.\nformat.version={}\ncluster.id={}\ncreated.ms={}\n",
            self.version,
            uuid_text(&self.cluster),
            self.created_ms
        );
        format!("{body}crc32c={:08x}\n", crc32c::crc32c(body.as_bytes()))
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Meta, MetaError> {
        let text = std::str::from_utf8(bytes).map_err(|_| MetaError::Damaged("it is not text"))?;
        let value = |key: &str| {
            text.lines()
                .filter_map(|line| line.split_once('='))
                .find(|(k, _)| *k == key)
                .map(|(_, v)| v)
        };
        let version: u32 = value("format.version")
            .and_then(|text| text.parse().ok())
            .ok_or(MetaError::Damaged("the line format.version is missing"))?;
        if version > FORMAT_VERSION {
            return Err(MetaError::NewerFormat(version));
        }
        let (body, _) = text
            .split_once("crc32c=")
            .ok_or(MetaError::Damaged("the line crc32c is missing"))?;
        let expected = format!("{body}crc32c={:08x}\n", crc32c::crc32c(body.as_bytes()));
        if expected != text {
            return Err(MetaError::Damaged("its checksum does not match"));
        }
        let cluster = value("cluster.id")
            .and_then(parse_uuid)
            .ok_or(MetaError::Damaged("no cluster.id"))?;
        let created_ms = value("created.ms")
            .and_then(|text| text.parse().ok())
            .ok_or(MetaError::Damaged("no created.ms"))?;
        Ok(Meta {
            version,
            cluster,
            created_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta() -> Meta {
        Meta {
            version: 1,
            cluster: cluster_id_from(1 << 60, 77),
            created_ms: 1_700_000_000_000,
        }
    }

    #[test]
    fn meta_is_read_back_as_written() {
        assert_eq!(Meta::decode(meta().encode().as_bytes()), Ok(meta()));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let bytes = meta().encode().into_bytes();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Meta::decode(&changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_newer_version_is_told_apart_from_damage() {
        let text = Meta { version: 2, ..meta() }.encode();
        assert_eq!(Meta::decode(text.as_bytes()), Err(MetaError::NewerFormat(2)));
    }

    #[test]
    fn uuid_text_is_kafkas() {
        // Kafka's Uuid.ONE_UUID and a value with all kinds of digits.
        assert_eq!(uuid_text(&1u128.to_be_bytes()), "AAAAAAAAAAAAAAAAAAAAAQ");
        let id = *b"\xfb\xef\xbe\xfb\xef\xbe\x4f\xff\xbf\xff\xff\xff\xff\xff\xff\xff";
        assert_eq!(parse_uuid(&uuid_text(&id)), Some(id));
        assert_eq!(uuid_text(&id).len(), 22);
    }

    #[test]
    fn drawn_ids_never_start_with_a_dash() {
        for high in 0..=255u64 {
            assert!(!uuid_text(&cluster_id_from(high << 56, high)).starts_with('-'));
        }
    }
}
