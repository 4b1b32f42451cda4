//! What is left of a partition by bands of slots: the picture of where the work is, small enough to be sent every second.

use anabranch_core::elastic::{Precision, Reading, SlotCounts};
use anabranch_core::slots::SlotSet;
use anabranch_wire::slot::SLOTS;

use super::model::Bands;

/// Most bands of a partition.
pub(super) const BANDS_MAX: usize = 512;

/// Records by slot, as they are added up.
struct Sum {
    slots: Vec<f64>,
    exact: bool,
}

/// The bands of a partition; `None` if no bands are wanted, or its records were not counted.
pub(super) fn of(reading: &Reading, bands: usize) -> Option<Bands> {
    if bands == 0 {
        return None;
    }
    let mut sum = Sum {
        slots: vec![0.0; SLOTS],
        exact: true,
    };
    match reading {
        Reading::Plain(plain) if plain.remaining == 0 => {}
        Reading::Plain(plain) => sum.add(&SlotSet::all(), plain.counts.as_ref()?),
        Reading::Divided(divided) => {
            for share in divided.shares.values() {
                match &share.counts {
                    Some(counts) => {
                        sum.add(&SlotSet::all(), &counts.movable);
                        sum.add(&SlotSet::all(), &counts.handed_out);
                    }
                    None => sum.spread(&share.slots, share.remaining),
                }
            }
            for loose in &divided.loose {
                match &loose.counts {
                    Some(counts) => sum.add(&loose.slots, counts),
                    None => sum.spread(&loose.slots, loose.remaining),
                }
            }
            for transit in &divided.transits {
                sum.spread(&transit.slots, transit.remaining);
            }
        }
    }
    let width = SLOTS.div_ceil(bands.min(BANDS_MAX));
    let unread = sum
        .slots
        .chunks(width)
        .map(|band| band.iter().sum::<f64>().round() as u64);
    Some(Bands {
        unread: unread.collect(),
        exact: sum.exact,
    })
}

impl Sum {
    fn add(&mut self, slots: &SlotSet, counts: &SlotCounts) {
        for slot in slots.iter() {
            self.slots[slot.index()] += counts.get(slot) as f64;
        }
        self.exact &= counts.precision() == Precision::Exact;
    }

    /// Adds records of which it is not known which slots they are in.
    fn spread(&mut self, slots: &SlotSet, records: u64) {
        if records == 0 {
            return;
        }
        let each = records as f64 / slots.len().max(1) as f64;
        slots.iter().for_each(|slot| self.slots[slot.index()] += each);
        self.exact = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::elastic::{DividedView, PlainView, ShareCounts, ShareView, Transit};
    use anabranch_wire::slot::Slot;

    fn slots(numbers: std::ops::Range<u16>) -> SlotSet {
        numbers.filter_map(Slot::new).collect()
    }

    fn counts(slot: u16, records: u64) -> SlotCounts {
        SlotCounts::exact([(Slot::new(slot).unwrap(), records)])
    }

    #[test]
    fn a_plain_partition_is_shown_once_it_is_counted() {
        let plain = |counts| {
            Reading::Plain(PlainView {
                remaining: 7,
                counts,
                ..PlainView::default()
            })
        };
        assert_eq!(of(&plain(None), 4), None);
        let shown = of(&plain(Some(counts(4095, 7))), 4).unwrap();
        assert_eq!((shown.unread, shown.exact), (vec![0, 0, 0, 7], true));
        assert_eq!(of(&plain(Some(counts(0, 7))), 0), None, "nobody asked");
        let empty = of(&Reading::Plain(PlainView::default()), 2).unwrap();
        assert_eq!((empty.unread, empty.exact), (vec![0, 0], true));
    }

    #[test]
    fn shares_and_what_moves_between_them_add_up() {
        let share = ShareView {
            slots: slots(0..2048),
            remaining: 12,
            counts: Some(ShareCounts {
                movable: counts(5, 10),
                handed_out: counts(6, 2),
            }),
            ..ShareView::default()
        };
        let transit = Transit {
            slots: slots(2048..4096),
            source: "a".to_owned(),
            target: None,
            since_ms: 0,
            remaining: 100,
        };
        let divided = DividedView {
            shares: [("a".to_owned(), share)].into(),
            transits: vec![transit],
            ..DividedView::default()
        };
        let shown = of(&Reading::Divided(divided), 4).unwrap();
        assert_eq!((shown.unread, shown.exact), (vec![12, 0, 50, 50], false));
    }

    #[test]
    fn bands_are_bounded() {
        assert_eq!(
            of(&Reading::Plain(PlainView::default()), 1_000_000)
                .unwrap()
                .unread
                .len(),
            BANDS_MAX
        );
        assert_eq!(
            of(&Reading::Plain(PlainView::default()), 256)
                .unwrap()
                .unread
                .len(),
            256
        );
    }
}
