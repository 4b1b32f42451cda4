//! Averages of what is measured about members.

/// How much of a new measurement counts, in percent; the rest is what was measured before.
const NEW_PERCENT: u64 = 40;

/// Moments closer together than this say little about a speed: what was done by then is measured later, together.
pub(super) const MEASURED_OVER_MS_MIN: u64 = 500;

/// A moving average; the first measurement counts alone.
pub(super) fn mixed(before: Option<u64>, new: u64) -> u64 {
    before.map_or(new, |before| {
        let sum =
            u128::from(before) * u128::from(100 - NEW_PERCENT) + u128::from(new) * u128::from(NEW_PERCENT);
        u64::try_from(sum / 100).unwrap_or(u64::MAX)
    })
}
