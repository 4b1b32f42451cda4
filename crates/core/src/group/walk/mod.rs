//! Random walks: clients of all kinds join, work, die, come back and repeat themselves; requests and answers get lost,
//! the broker restarts, topics grow. After every step the rules that hold always are checked, and after a calm period
//! the rules that hold in the end.

mod client;
mod rules;

use anabranch_wire::ErrorCode;

use client::{Client, Dice, Manner, Owned, from_wire, to_wire};

use super::harness::{Bench, alive, classic, modern, read_assignment, subscription};
use super::state::ConsumerGroup;
use super::*;

struct Walk {
    dice: Dice,
    bench: Bench,
    clients: Vec<Client>,
    /// Highest group epoch seen.
    epoch: i32,
    made: u64,
}

const TOPICS: [&str; 2] = ["a", "b"];

impl Walk {
    fn new(seed: u64) -> Self {
        let mut walk = Self {
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            bench: Bench::new(&[("a", 4), ("b", 3)]),
            clients: Vec::new(),
            epoch: 0,
            made: 0,
        };
        for _ in 0..=walk.dice.roll(4) {
            walk.add_client();
        }
        walk
    }

    fn add_client(&mut self) {
        let manner = match self.dice.roll(6) {
            0 => Manner::Eager("range"),
            1 => Manner::Eager("RoundRobinAssigner"),
            2 => Manner::Eager("sticky"),
            3 => Manner::Cooperative,
            _ => Manner::Modern,
        };
        let topics = if self.dice.one_in(4) {
            vec![TOPICS[0]]
        } else {
            TOPICS.to_vec()
        };
        let is_static = self.dice.one_in(4);
        self.made += 1;
        self.clients
            .push(Client::new(self.made, manner, is_static, topics));
    }

    fn group(&self) -> Option<&ConsumerGroup> {
        self.bench.coordinator.groups().get("g")?.consumer()
    }

    fn is_member(&self, client: &Client) -> bool {
        !client.id.is_empty()
            && self
                .group()
                .is_some_and(|group| group.members.contains_key(&client.id))
    }

    fn step(&mut self) {
        match self.dice.roll(20) {
            0 => {
                let ms = [100, 1_000, 5_000, 30_000][self.dice.roll(4) as usize];
                self.bench.pass(ms);
            }
            1 if self.clients.len() < 5 => self.add_client(),
            2 if self.dice.one_in(3) => self.kill(),
            3 if self.dice.one_in(3) => self.leave(),
            4 if self.dice.one_in(4) => self.bench.restart(),
            5 if self.dice.one_in(4) => {
                let partitions = self.bench.topics.by_name("a").unwrap().partitions;
                if partitions < 9 {
                    self.bench.topics.grow("a", partitions + 1);
                    self.bench.topics_changed();
                }
            }
            6 | 7 => self.commit(),
            8 => self.come_back(),
            _ => {
                if let Some(at) = self.pick() {
                    self.act(at, true);
                }
            }
        }
        self.check();
    }

    fn pick(&mut self) -> Option<usize> {
        let living: Vec<usize> = (0..self.clients.len())
            .filter(|at| self.clients[*at].alive)
            .collect();
        (!living.is_empty()).then(|| living[self.dice.roll(living.len() as u64) as usize])
    }

    /// Dies without a word. Its work goes on until the broker has expelled it: the worst case.
    fn kill(&mut self) {
        if let Some(at) = self.pick() {
            self.clients[at].alive = false;
        }
    }

    /// A dead one is started anew: another process, which knows nothing but its instance id.
    fn come_back(&mut self) {
        let Some(at) = self.clients.iter().position(|client| !client.alive) else {
            return;
        };
        let old = self.clients.remove(at);
        // Without an instance id it is simply a new client; the old member may still be there.
        self.made += 1;
        let mut new = Client::new(self.made, old.manner, false, old.topics.clone());
        new.instance = old.instance.clone();
        if old.manner == Manner::Modern && old.instance.is_some() {
            // The consumer protocol asks a static member to say good-bye, or to wait for its session.
            self.bench.pass(46_000);
        }
        self.clients.push(new);
    }

    fn leave(&mut self) {
        let Some(at) = self.pick() else { return };
        let mut client = self.clients.remove(at);
        client.owned.clear();
        if client.manner == Manner::Modern {
            let epoch = if client.instance.is_some() && self.dice.one_in(2) {
                -2
            } else {
                -1
            };
            let mut request = alive(&client.id, epoch, None);
            request.instance_id = client.instance.clone();
            let _ = self.bench.consumer(&request);
            if epoch == -2 {
                self.made += 1;
                let mut back = Client::new(self.made, Manner::Modern, false, client.topics.clone());
                back.instance = client.instance.clone();
                self.clients.push(back);
            }
        } else if !client.id.is_empty() {
            self.bench.leave(&client.id, client.instance.as_deref());
        }
    }

    /// A client does what it has to do next. With `faults`, requests and answers may be lost or come twice.
    fn act(&mut self, at: usize, faults: bool) {
        let fault = if faults { self.dice.roll(12) } else { 99 };
        if fault == 0 {
            return; // The request never arrives.
        }
        let (lost, twice) = (fault == 1, fault == 2);
        let mut client = self.clients[at].clone();
        match client.manner {
            Manner::Modern => self.act_modern(&mut client, lost, twice),
            _ if client.must_join => self.act_join(&mut client, lost, twice),
            _ if client.must_sync => self.act_sync(&mut client, lost),
            _ => self.act_heartbeat(&mut client, lost),
        }
        self.clients[at] = client;
    }

    fn act_modern(&mut self, client: &mut Client, lost: bool, twice: bool) {
        // It may take a while until the application has let go of partitions. A client whose last request was not
        // answered takes no new partitions before it has an answer: an owned list without a partition can mean that
        // the client has given it up or that it has not taken it yet, and KIP-848 gives the broker no way to tell.
        if !client.must_say_all
            && let Some(pending) = client.pending.take()
        {
            if self.dice.one_in(3) {
                client.pending = Some(pending);
            } else {
                client.owned = pending;
                client.must_tell = true;
            }
        }
        let tells = client.must_tell || (client.pending.is_none() && self.dice.one_in(5));
        let owned = to_wire(&client.owned);
        let mut request = if client.epoch == 0 {
            client.owned.clear();
            modern(&client.id, &client.topics)
        } else {
            alive(&client.id, client.epoch, tells.then_some(owned))
        };
        request.instance_id = client.instance.clone();
        if client.must_say_all && client.epoch > 0 {
            request = ConsumerHeartbeat {
                member_epoch: client.epoch,
                owned: Some(to_wire(&client.owned)),
                instance_id: client.instance.clone(),
                ..modern(&client.id, &client.topics)
            };
        }
        let mut answer = self.bench.consumer(&request);
        if twice {
            // The answer to the first one was lost, then.
            client.must_say_all = true;
            answer = self.bench.consumer(&request);
        }
        if lost {
            client.must_say_all = true;
            return;
        }
        match answer {
            Ok(answer) => {
                client.must_say_all = twice;
                client.must_tell &= request.owned.is_none();
                client.epoch = answer.member_epoch;
                if let Some(assignment) = answer.assignment {
                    client.pending = Some(from_wire(&assignment));
                }
            }
            Err(refused) => match refused.code() {
                ErrorCode::UnknownMemberId | ErrorCode::FencedMemberEpoch | ErrorCode::GroupIdNotFound => {
                    client.lose_everything();
                }
                ErrorCode::FencedInstanceId => {
                    client.lose_everything();
                    client.alive = false;
                }
                // Somebody with the same instance id is still there; try again later.
                ErrorCode::UnreleasedInstanceId => client.lose_everything(),
                other => panic!("unexpected {other} for {request:?}"),
            },
        }
    }

    fn act_join(&mut self, client: &mut Client, lost: bool, twice: bool) {
        let (name, owned) = match client.manner {
            Manner::Eager(name) => {
                client.owned.clear();
                (name, Vec::new())
            }
            _ => ("cooperative-sticky", by_topic_name(&self.bench, &client.owned)),
        };
        let owned: Vec<(&str, &[i32])> = owned.iter().map(|(t, p)| (t.as_str(), p.as_slice())).collect();
        let mut request = classic(&client.id, name, &client.topics);
        request.version = 5;
        request.instance_id = client.instance.clone();
        request.protocols[0].1 = subscription(&client.topics, &owned, None);
        let mut answer = self.bench.join(&request);
        if twice && !client.id.is_empty() {
            answer = self.bench.join(&request);
        }
        if lost {
            return;
        }
        match answer.error {
            ErrorCode::None => {
                client.id = answer.member_id;
                client.epoch = answer.generation_id;
                client.must_join = false;
                client.must_sync = true;
            }
            ErrorCode::MemberIdRequired => client.id = answer.member_id,
            ErrorCode::UnknownMemberId => client.lose_everything(),
            ErrorCode::FencedInstanceId => {
                client.lose_everything();
                client.alive = false;
            }
            other => panic!("unexpected {other} for {request:?}"),
        }
    }

    fn act_sync(&mut self, client: &mut Client, lost: bool) {
        let request = SyncGroup {
            group_id: "g".to_owned(),
            generation_id: client.epoch,
            member_id: client.id.clone(),
            instance_id: client.instance.clone(),
            ..SyncGroup::default()
        };
        let token = self.bench.send_sync(&request);
        let answer = self.bench.sync_answer(token);
        if lost {
            return;
        }
        match answer.error {
            ErrorCode::None => {
                client.must_sync = false;
                let new = self.read(&answer.assignment);
                // A cooperative client releases, and joins again to say so.
                client.must_join = client.manner == Manner::Cooperative && !client.owned.is_subset(&new);
                client.owned = new;
            }
            other => self.rejoin_after(client, other),
        }
    }

    fn act_heartbeat(&mut self, client: &mut Client, lost: bool) {
        let request = Heartbeat {
            group_id: "g".to_owned(),
            generation_id: client.epoch,
            member_id: client.id.clone(),
            instance_id: client.instance.clone(),
        };
        let (error, effects) =
            self.bench
                .coordinator
                .heartbeat(self.bench.now, &self.bench.topics, &Bench::caller(), &request);
        self.bench.take(effects);
        if !lost && error != ErrorCode::None {
            self.rejoin_after(client, error);
        }
    }

    fn rejoin_after(&mut self, client: &mut Client, error: ErrorCode) {
        match error {
            ErrorCode::RebalanceInProgress => {
                client.must_join = true;
                client.must_sync = false;
            }
            ErrorCode::IllegalGeneration | ErrorCode::UnknownMemberId => client.lose_everything(),
            ErrorCode::FencedInstanceId => {
                client.lose_everything();
                client.alive = false;
            }
            other => panic!("unexpected {other} for {client:?}"),
        }
    }

    /// Somebody commits, perhaps somebody who has been expelled.
    fn commit(&mut self) {
        if self.clients.is_empty() {
            return;
        }
        let at = self.dice.roll(self.clients.len() as u64) as usize;
        let client = self.clients[at].clone();
        let Some(&(topic, partition)) = client.owned.iter().next() else {
            return;
        };
        let Some(name) = self.bench.topics.by_id(topic).map(|topic| topic.name.to_owned()) else {
            return;
        };
        let before = self.bench.coordinator.groups().clone();
        let offset = self.dice.roll(1_000) as i64;
        let error = self
            .bench
            .commit(&client.id, client.epoch, &name, partition, offset);
        if self.is_member(&client) {
            let generation_lost = self.group().unwrap().members[&client.id].current.epoch != client.epoch;
            assert!(error.is_ok() || generation_lost, "{error} for {client:?}");
            if error.is_ok() {
                assert_eq!(self.bench.committed(&name, partition), offset);
            }
        } else {
            assert!(!error.is_ok(), "the late commit of {client:?} was taken");
            assert_eq!(
                &before,
                self.bench.coordinator.groups(),
                "and must change nothing"
            );
        }
    }

    fn read(&self, assignment: &bytes::Bytes) -> Owned {
        let topics = read_assignment(assignment);
        let pairs = topics.iter().flat_map(|(name, partitions)| {
            let id = self.bench.topics.id(name);
            partitions.iter().map(move |partition| (id, *partition))
        });
        pairs.collect()
    }

    /// Nobody fails any more: after a while everybody has what they shall have, and it stays quiet.
    fn calm_down(&mut self) {
        for _ in 0..200 {
            self.bench.pass(1_000);
            for at in 0..self.clients.len() {
                if self.clients[at].alive {
                    self.act(at, false);
                }
            }
            self.check();
        }
        let quiet_from = self.bench.journal.len();
        for _ in 0..5 {
            self.bench.pass(1_000);
            for at in 0..self.clients.len() {
                if self.clients[at].alive {
                    self.act(at, false);
                }
            }
        }
        assert_eq!(
            self.bench.journal.len(),
            quiet_from,
            "a settled group stays quiet"
        );
        let Some(group) = self.group() else { return };
        let living: Vec<&Client> = self.clients.iter().filter(|client| client.alive).collect();
        assert_eq!(
            group.members.len(),
            living.len(),
            "members {:?}",
            group.members.keys()
        );
        for client in living {
            let target = &group.members[&client.id].target;
            let pairs = target
                .iter()
                .flat_map(|(topic, set)| set.iter().map(|partition| (*topic, *partition)));
            assert_eq!(client.owned, pairs.collect::<Owned>(), "{client:?}");
        }
        self.check_balance(group);
    }
}

fn by_topic_name(bench: &Bench, owned: &Owned) -> Vec<(String, Vec<i32>)> {
    let named = to_wire(owned).into_iter();
    named
        .map(|(topic, set)| (bench.topics.by_id(topic).unwrap().name.to_owned(), set))
        .collect()
}

fn run(seed: u64, steps: usize) -> Walk {
    let mut walk = Walk::new(seed);
    for step in 0..steps {
        walk.step();
        if step % 64 == 0 {
            walk.bench.check_fold();
        }
    }
    walk.calm_down();
    walk.bench.check_fold();
    walk
}

#[test]
fn random_walks_keep_every_rule() {
    for seed in 1..=100 {
        let outcome = std::panic::catch_unwind(|| run(seed, 300));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for seed in 1..=5 {
        let bytes =
            |walk: Walk| -> Vec<Vec<u8>> { walk.bench.journal.iter().map(GroupChange::encode).collect() };
        assert_eq!(bytes(run(seed, 300)), bytes(run(seed, 300)), "seed {seed}");
    }
}
