//! The network between clients and the broker: connections that keep order, take time, and break.
//!
//! A client has up to two connections, as real ones do: one for records, one to the coordinator, so that a fetch that
//! waits does not hold up a heartbeat. What is sent on a connection arrives in order or not at all (TCP): nothing is
//! duplicated, but a client whose connection broke knows nothing of what it had sent, and sends again on a new one.
//! Of what was under way at the break, any first part still reaches the broker: on the coordinator's connection at
//! once, on the other one perhaps after the client has already come back (the broker reads on from its buffers).

use std::collections::BTreeMap;

use anabranch_core::group::elastic::ClientSoftware;

use crate::message::{Answer, Request};
use crate::world::{Event, World};

/// Which of a client's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Line {
    /// Produce, Fetch, Metadata, administration.
    Data,
    /// Groups.
    Group,
}

/// A connection: the client's number, and which.
pub type Lane = (usize, Line);

/// A request, unique in the run.
pub type CallId = u64;

/// What a client says of itself on each connection (ApiVersions, the header of each request).
#[derive(Clone, Debug, Default)]
pub struct Introduction {
    /// Its client id.
    pub client_id: String,
    /// Its address.
    pub host: String,
    /// Its software, if it tells.
    pub software: Option<ClientSoftware>,
}

impl Introduction {
    /// That of a client that says nothing, by its number.
    pub fn of(client: usize) -> Self {
        Self {
            client_id: format!("client-{client}"),
            host: format!("/10.0.0.{client}"),
            software: None,
        }
    }
}

/// A request is seldom slow.
const SLOW_PERCENT: u64 = 4;

#[derive(Debug, Default)]
struct Connection {
    last_request_us: u64,
    last_answer_us: u64,
    /// It has broken, and until then its client does not know: what it sends is lost.
    broken_until_us: u64,
    /// It has broken with requests on it, and so many of them its client has not seen to be lost. A client that stands still sees
    /// nothing; and until it has seen all, what it sends goes the way of the others.
    unseen: usize,
    /// Requests without an answer so far, in order; and whether they have reached the broker.
    open: BTreeMap<CallId, bool>,
}

/// All connections.
#[derive(Debug, Default)]
pub struct Net {
    lanes: BTreeMap<Lane, Connection>,
    /// By the clients' numbers.
    introductions: BTreeMap<usize, Introduction>,
    last_call: CallId,
    /// Whether there is a broker, whose machine may still have what came over a connection that has broken.
    is_broker_up: bool,
    /// Requests of broken connections that will not arrive.
    lost: std::collections::BTreeSet<CallId>,
    /// Requests of broken connections that will arrive: nobody hears their answers.
    orphans: std::collections::BTreeSet<CallId>,
    /// Answers that were lost, and requests.
    losses: (u64, u64),
}

/// How long a message takes.
fn delay_us(world: &mut World) -> u64 {
    if world.rng.percent(SLOW_PERCENT) {
        world.rng.between(5_000, 200_000)
    } else {
        world.rng.between(50, 1_500)
    }
}

impl Net {
    /// Sends a request.
    pub fn send(&mut self, world: &mut World, lane: Lane, request: Request) -> CallId {
        self.last_call += 1;
        let call = self.last_call;
        let delay_us = delay_us(world);
        let connection = self.lanes.entry(lane).or_default();
        if connection.unseen > 0 || world.now_us() < connection.broken_until_us {
            self.losses.1 += 1;
            connection.unseen += 1;
            world.at_us(connection.broken_until_us, Event::Answer(lane, call, None));
            return call;
        }
        connection.last_request_us = connection.last_request_us.max(world.now_us() + delay_us);
        connection.open.insert(call, false);
        world.at_us(
            connection.last_request_us,
            Event::Arrive(lane, call, Box::new(request)),
        );
        call
    }

    /// A request is about to reach the broker. False if it was lost on the way.
    pub fn arrive(&mut self, lane: Lane, call: CallId) -> bool {
        if self.lost.remove(&call) {
            return false;
        }
        if let Some(arrived) = self
            .lanes
            .get_mut(&lane)
            .and_then(|connection| connection.open.get_mut(&call))
        {
            *arrived = true;
        }
        true
    }

    /// A client will say this of itself from now on.
    pub fn introduce(&mut self, client: usize, introduction: Introduction) {
        self.introductions.insert(client, introduction);
    }

    /// What a client says of itself.
    pub fn introduction(&self, client: usize) -> Introduction {
        let found = self.introductions.get(&client).cloned();
        found.unwrap_or_else(|| Introduction::of(client))
    }

    /// Whether somebody waits for the answer.
    pub fn is_awaited(&self, lane: Lane, call: CallId) -> bool {
        self.lanes
            .get(&lane)
            .is_some_and(|connection| connection.open.contains_key(&call))
    }

    /// Sends an answer, if anybody waits for it. Answers of a connection must be sent in the order of the requests.
    pub fn answer(&mut self, world: &mut World, lane: Lane, call: CallId, answer: Answer) {
        let delay_us = delay_us(world);
        let Some(connection) = self.lanes.get_mut(&lane) else {
            return;
        };
        if !connection.open.contains_key(&call) {
            return;
        }
        connection.last_answer_us = connection.last_answer_us.max(world.now_us() + delay_us);
        world.at_us(
            connection.last_answer_us,
            Event::Answer(lane, call, Some(Box::new(answer))),
        );
    }

    /// An answer has reached its client. False if the connection had broken before.
    pub fn received(&mut self, lane: Lane, call: CallId) -> bool {
        self.lanes
            .get_mut(&lane)
            .is_some_and(|connection| connection.open.remove(&call).is_some())
    }

    /// A client learns that an answer is lost: it opens a new connection for what it sends from now on.
    pub fn seen(&mut self, lane: Lane) {
        if let Some(connection) = self.lanes.get_mut(&lane) {
            connection.unseen = connection.unseen.saturating_sub(1);
        }
    }

    /// Breaks a connection. The client learns of each open request that its answer is lost. If the broker is gone, or refuses
    /// the connection (`survives` is false), nothing that was under way arrives: a later broker never hears of it.
    pub fn cut(&mut self, world: &mut World, lane: Lane, survives: bool) {
        let Some(connection) = self.lanes.get_mut(&lane) else {
            return;
        };
        let open = std::mem::take(&mut connection.open);
        connection.unseen += open.len();
        let under_way: Vec<CallId> = open
            .iter()
            .filter(|(_, arrived)| !**arrived)
            .map(|(call, _)| *call)
            .collect();
        let arriving = if survives && self.is_broker_up {
            world.rng.index(under_way.len() + 1)
        } else {
            0
        };
        self.losses.0 += (open.len() - under_way.len() + arriving) as u64;
        self.losses.1 += (under_way.len() - arriving) as u64;
        self.orphans.extend(&under_way[..arriving]);
        self.lost.extend(&under_way[arriving..]);
        connection.last_request_us = world.now_us();
        let notice_us = world.now_us() + world.rng.between(500, 20_000);
        connection.last_answer_us = notice_us;
        connection.broken_until_us = notice_us;
        for call in open.keys() {
            world.at_us(notice_us, Event::Answer(lane, *call, None));
        }
        if lane.1 == Line::Group {
            world.hasten(&under_way[..arriving]);
        }
    }

    /// Whether a request that arrives came over a connection that has broken.
    pub fn is_late(&self, call: CallId) -> bool {
        self.orphans.contains(&call)
    }

    /// The same, once.
    pub fn is_orphan(&mut self, call: CallId) -> bool {
        self.orphans.remove(&call)
    }

    /// How many answers were lost so far, and how many requests.
    pub fn losses(&self) -> (u64, u64) {
        self.losses
    }

    /// The broker is gone: every connection breaks, and nothing that was under way arrives.
    pub fn broker_gone(&mut self, world: &mut World) {
        self.is_broker_up = false;
        self.lost.append(&mut self.orphans);
        for lane in self.lanes() {
            self.cut(world, lane, false);
        }
    }

    /// A broker is there, and takes connections.
    pub fn broker_started(&mut self) {
        self.is_broker_up = true;
    }

    /// The connections of all clients.
    pub fn lanes(&self) -> Vec<Lane> {
        self.lanes.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Keep;

    #[test]
    fn until_a_client_has_seen_that_its_connection_broke_what_it_sends_is_lost() {
        let (mut world, mut net, lane) = (World::new(1, Keep::Nothing), Net::default(), (3, Line::Data));
        let first = net.send(&mut world, lane, Request::Metadata);
        net.cut(&mut world, lane, false);
        let Some(Event::Arrive(..)) = world.advance() else {
            panic!("the request is under way")
        };
        assert!(!net.arrive(lane, first));
        let Some(Event::Answer(_, lost, None)) = world.advance() else {
            panic!("the client is told")
        };
        assert_eq!(lost, first);
        // It stands still, and looks at that only after it has sent something else.
        let second = net.send(&mut world, lane, Request::Metadata);
        let Some(Event::Answer(_, lost, None)) = world.advance() else {
            panic!("on the broken connection")
        };
        assert_eq!(lost, second);
        net.seen(lane);
        // Sent while one loss is seen and the other is not: it must not overtake what was sent before it and is lost.
        let between = net.send(&mut world, lane, Request::Metadata);
        let Some(Event::Answer(_, lost, None)) = world.advance() else {
            panic!("on the broken connection, too")
        };
        assert_eq!(lost, between);
        net.seen(lane);
        net.seen(lane);
        let third = net.send(&mut world, lane, Request::Metadata);
        let Some(Event::Arrive(_, arrives, _)) = world.advance() else {
            panic!("on a new one")
        };
        assert!(arrives == third && net.arrive(lane, third));
    }

    #[test]
    fn what_is_under_way_while_there_is_no_broker_never_arrives() {
        let lane = (3, Line::Data);
        let arrived = |is_up: bool| {
            (0..20).any(|seed| {
                let (mut world, mut net) = (World::new(seed, Keep::Nothing), Net::default());
                net.broker_started();
                if !is_up {
                    net.broker_gone(&mut world);
                }
                let calls: Vec<CallId> = (0..5)
                    .map(|_| net.send(&mut world, lane, Request::Metadata))
                    .collect();
                net.cut(&mut world, lane, true);
                calls.into_iter().any(|call| net.arrive(lane, call))
            })
        };
        assert!(arrived(true));
        assert!(!arrived(false), "the connection was never taken");
    }
}
