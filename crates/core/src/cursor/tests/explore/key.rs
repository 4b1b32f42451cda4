//! When two worlds are the same. Ids and epochs count by their order alone, and closed or retired ids only if somebody
//! may still name them. Times, versions and the tables made for readers do not count. Members do not stand for one
//! another: the order in which chains got their ids matters.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::super::live::Mark;
use super::model::{Scene, Setting, slot};
use crate::cursor::*;

impl Scene {
    /// 128 bits of everything that matters.
    pub(super) fn key(&self, setting: &Setting) -> u128 {
        let mut bytes = Bytes::new(self);
        self.put_cursor(setting, &mut bytes);
        self.put_clients(&mut bytes);
        let (mut low, mut high) = (DefaultHasher::new(), DefaultHasher::new());
        high.write_u8(1);
        let all = (&bytes.out, self.budget, self.end, self.processed, self.excused);
        all.hash(&mut low);
        all.hash(&mut high);
        u128::from(low.finish()) << 64 | u128::from(high.finish())
    }

    /// Every id that somebody may still name.
    fn named(&self) -> BTreeSet<SliceId> {
        let mut ids = BTreeSet::new();
        for client in &self.clients {
            let lists = [&client.buffer, &client.work, &client.fetches];
            ids.extend(lists.into_iter().flatten().map(|place| place.slice));
            let places = [client.position, client.done, client.sent];
            ids.extend(places.into_iter().flatten().map(|place| place.slice));
            ids.extend(client.commits.iter().map(|(_, place)| place.slice));
            ids.extend(client.answers.iter().flat_map(|a| [a.to.slice, a.end.slice]));
        }
        ids
    }

    fn put_cursor(&self, setting: &Setting, bytes: &mut Bytes) {
        let divided = self.divided();
        let pieces = |bytes: &mut Bytes, pieces: &Pieces| {
            for number in 0..setting.slots {
                bytes.number(pieces.from_of(slot(number)).unwrap_or(-1));
            }
        };
        pieces(bytes, divided.loose());
        for (name, chain) in divided.chains() {
            bytes.text(chain.member());
            bytes.epoch(chain.epoch());
            bytes.number(chain.state() as i64);
            bytes.number(chain.position().offset);
            bytes.number(i64::from(chain.touched));
            for slice in chain.slices() {
                bytes.id(slice.id);
                bytes.number(slice.start);
                pieces(bytes, &slice.pieces);
                bytes.number(slice.to.unwrap_or(-1));
                bytes.number(slice.ceiling.map_or(-1, |ceiling| ceiling.min(setting.end() + 1)));
            }
            bytes.number(-2);
            for id in bytes.named.clone() {
                bytes.number(i64::from(chain.closed().contains(&id)));
            }
            bytes.number(i64::from(chain.closed().is_empty()));
            for transit in chain.transits() {
                bytes.id(transit.by);
                pieces(bytes, &transit.pieces);
            }
            bytes.number(-2);
            self.put_live(name, bytes);
        }
        for id in bytes.named.clone() {
            let is_retired = matches!(self.ids.get(id), Some(IdUse::Retired { .. }));
            bytes.number(i64::from(is_retired));
        }
    }

    fn put_live(&self, name: SliceId, bytes: &mut Bytes) {
        let Some(live) = self.live.chains.get(&name) else {
            return;
        };
        for (id, slice) in &live.slices {
            bytes.id(*id);
            bytes.number(slice.served);
            bytes.number(slice.known);
            bytes.number(i64::from(slice.is_known));
            bytes.number(slice.block.map_or(-1, |block| block.until));
            let (from, to) = slice.searched.unwrap_or((-1, -1));
            bytes.number(from);
            bytes.number(to);
            slice
                .records
                .iter()
                .for_each(|record| bytes.number(record.offset));
            bytes.number(-2);
        }
        bytes.number(-2);
        bytes.place(live.sure);
        bytes.place(live.last);
        match live.mark {
            Mark::Clear => bytes.number(-1),
            Mark::Rewound => bytes.number(-2),
            Mark::Fresh(id) => bytes.id(id),
        }
    }

    fn put_clients(&self, bytes: &mut Bytes) {
        for client in &self.clients {
            bytes.number(client.role as i64);
            bytes.epoch(client.epoch);
            for list in [&client.buffer, &client.work, &client.fetches] {
                list.iter().for_each(|place| bytes.place(*place));
                bytes.number(-2);
            }
            for place in [client.position, client.done, client.sent] {
                match place {
                    Some(place) => bytes.place(place),
                    None => bytes.number(-3),
                }
            }
            for (epoch, place) in &client.commits {
                bytes.epoch(*epoch);
                bytes.place(*place);
            }
            bytes.number(-2);
            for answer in &client.answers {
                bytes.place(answer.to);
                answer.records.iter().for_each(|place| bytes.place(*place));
                bytes.number(-2);
                bytes.place(answer.end);
            }
            bytes.number(-2);
        }
    }
}

struct Bytes {
    out: Vec<u8>,
    named: Vec<SliceId>,
    ids: BTreeMap<SliceId, u8>,
    epochs: BTreeMap<i32, u8>,
}

impl Bytes {
    fn new(scene: &Scene) -> Self {
        let named = scene.named();
        let mut ids = named.clone();
        let mut epochs = BTreeSet::new();
        for (name, chain) in scene.divided().chains() {
            ids.insert(name);
            ids.extend(chain.slices().iter().map(|slice| slice.id));
            ids.extend(chain.transits().iter().map(|transit| transit.by));
            epochs.insert(chain.epoch());
            if let Some(live) = scene.live.chains.get(&name) {
                ids.extend(live.slices.keys());
                ids.extend([live.sure.slice, live.last.slice]);
                if let Mark::Fresh(id) = live.mark {
                    ids.insert(id);
                }
            }
        }
        for client in &scene.clients {
            epochs.insert(client.epoch);
            epochs.extend(client.commits.iter().map(|(epoch, _)| *epoch));
        }
        Self {
            out: Vec::with_capacity(256),
            named: named.into_iter().collect(),
            ids: ids.into_iter().zip(0..).collect(),
            epochs: epochs.into_iter().zip(0..).collect(),
        }
    }

    /// All numbers are small here.
    fn number(&mut self, number: i64) {
        self.out.push(number.clamp(-100, 100) as u8);
    }

    fn id(&mut self, id: SliceId) {
        self.out.push(self.ids.get(&id).copied().unwrap_or(u8::MAX));
    }

    fn epoch(&mut self, epoch: i32) {
        self.out.push(self.epochs[&epoch]);
    }

    fn place(&mut self, place: Position) {
        self.id(place.slice);
        self.number(place.offset);
    }

    fn text(&mut self, text: &str) {
        self.out.extend(text.bytes());
    }
}
