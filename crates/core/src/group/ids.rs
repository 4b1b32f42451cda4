//! Member ids that the coordinator makes.

/// Longest part of a member id that comes from the client.
const PREFIX_BYTES_MAX: usize = 200;

/// A member id from 16 fresh bytes, in the form of a UUID. As in Kafka, the id of a classic member begins with its
/// client id or instance id, so that a person can tell who it is.
pub(super) fn member_id(prefix: &str, fresh: [u8; 16]) -> String {
    let mut id = String::with_capacity(prefix.len().min(PREFIX_BYTES_MAX) + 37);
    for part in prefix.chars() {
        if id.len() + part.len_utf8() > PREFIX_BYTES_MAX {
            break;
        }
        id.push(part);
    }
    if !id.is_empty() {
        id.push('-');
    }
    for (at, byte) in fresh.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            id.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_readable_and_bounded() {
        let fresh = [0xab; 16];
        assert_eq!(member_id("", fresh), "abababab-abab-abab-abab-abababababab");
        assert_eq!(
            member_id("kgo", fresh),
            "kgo-abababab-abab-abab-abab-abababababab"
        );
        let long = member_id(&"ä".repeat(500), fresh);
        assert_eq!(long.len(), 200 + 37);
    }
}
