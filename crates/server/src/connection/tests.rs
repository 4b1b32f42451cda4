//! A connection against a toy service: order, back pressure, hostile senders, shutdown.
//!
//! The toy's requests: first byte `e` echoes the rest, `d` echoes it once the log is durable up to the second byte,
//! `p` parks until the test says so, `n` has no answer, `b` answers with as many KiB as the second byte says,
//! `x` is refused.

use std::sync::Mutex;
use std::time::Duration;

use anabranch_core::ids::Lsn;
use anabranch_wire::chunks::Chunks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Toy {
    seen: Mutex<Vec<Bytes>>,
    release: Arc<Notify>,
}

fn reply(body: &[u8]) -> Reply {
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(body);
    let mut chunks = Chunks::default();
    chunks.push(frame.into());
    Reply {
        chunks,
        ..Reply::default()
    }
}

impl Service for Toy {
    fn call(&self, _peer: &mut Peer, frame: Bytes) -> Result<Pending, Close> {
        self.seen.lock().unwrap().push(frame.clone());
        Ok(match frame[0] {
            b'e' => Pending::Ready(reply(&frame[1..])),
            b'd' => Pending::Ready(Reply {
                after: Lsn(u64::from(frame[1])),
                ..reply(&frame[1..])
            }),
            b'n' => Pending::Ready(Reply {
                after: Lsn(u64::from(frame[1])),
                ..Reply::default()
            }),
            b'b' => Pending::Ready(reply(&vec![0; usize::from(frame[1]) << 10])),
            b'p' => {
                let release = Arc::clone(&self.release);
                Pending::Later(Box::pin(async move {
                    release.notified().await;
                    Ok(reply(&frame[1..]))
                }))
            }
            _ => return Err(Close::Hostile("not a request".to_owned())),
        })
    }

    fn closed(&self, _connection: ConnectionId) {}
}

struct World {
    client: TcpStream,
    toy: Arc<Toy>,
    shared: Arc<Shared>,
    server: JoinHandle<Close>,
}

async fn world(limits: Limits) -> World {
    let shared = Arc::new(Shared {
        requests: RequestBudget::new(limits.request_budget_bytes),
        read_ahead: Budget::new(limits.receive_buffer_bytes_max * 4),
        durable: Durable::default(),
        shutdown: Arc::default(),
        metrics: Arc::default(),
        limits,
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, addr) = listener.accept().await.unwrap();
    let advertised = Advertised {
        host: "localhost".to_owned(),
        port: 9092,
    };
    let toy = Arc::new(Toy::default());
    let peer = Peer {
        connection: ConnectionId(1),
        addr,
        advertised,
        software: None,
    };
    let connection = Connection::new(stream, peer, Arc::clone(&toy), Arc::clone(&shared));
    let server = tokio::spawn(async move { connection.run().await.1 });
    World {
        client,
        toy,
        shared,
        server,
    }
}

impl World {
    async fn send(&mut self, body: &[u8]) {
        self.client.write_all(&frame(body)).await.unwrap();
    }

    async fn receive(&mut self) -> Vec<u8> {
        let read = async {
            let len = self.client.read_u32().await.unwrap();
            let mut body = vec![0; len as usize];
            self.client.read_exact(&mut body).await.unwrap();
            body
        };
        tokio::time::timeout(PATIENCE, read).await.expect("an answer")
    }

    /// Waits until the service has seen `count` requests.
    async fn seen(&self, count: usize) {
        let wait = async {
            while self.toy.seen.lock().unwrap().len() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, wait)
            .await
            .expect("the requests to arrive");
    }

    async fn close(self) -> Close {
        tokio::time::timeout(PATIENCE, self.server)
            .await
            .expect("the connection to end")
            .unwrap()
    }
}

fn frame(body: &[u8]) -> Vec<u8> {
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(body);
    frame
}

#[tokio::test]
async fn answers_keep_the_order_of_requests_while_decisions_do_not_wait() {
    let mut world = world(Limits::default()).await;
    let mut all = frame(b"p1");
    all.extend(frame(b"d\x05"));
    all.extend(frame(b"e3"));
    world.client.write_all(&all).await.unwrap();
    world.seen(3).await;
    world.shared.durable.advance(Lsn(5));
    world.toy.release.notify_one();
    assert_eq!(world.receive().await, b"1");
    assert_eq!(world.receive().await, b"\x05");
    assert_eq!(world.receive().await, b"3");
}

#[tokio::test]
async fn an_answer_waits_for_the_disk_and_a_silent_request_holds_its_memory_until_then() {
    let mut world = world(Limits::default()).await;
    let all_free = world.shared.requests.available();
    world.send(b"n\x07").await;
    world.seen(1).await;
    assert!(world.shared.requests.available() < all_free);
    world.send(b"d\x08").await;
    world.seen(2).await;
    world.shared.durable.advance(Lsn(8));
    assert_eq!(world.receive().await, b"\x08");
    assert_eq!(world.shared.requests.available(), all_free);
}

#[tokio::test]
async fn a_client_that_pipelines_without_end_is_not_read_beyond_the_limit() {
    let limits = Limits {
        in_flight_requests_max: 8,
        ..Limits::default()
    };
    let mut world = world(limits).await;
    for n in 0..100_u8 {
        world.send(&[b'd', 1, n]).await;
    }
    world.seen(8).await;
    // All hundred lie in the socket; the ninth is taken up only when an answer leaves.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.toy.seen.lock().unwrap().len(), 8);
    world.shared.durable.advance(Lsn(1));
    for n in 0..100_u8 {
        assert_eq!(world.receive().await, [1, n]);
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_either_and_is_closed_in_time() {
    let limits = Limits {
        write_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let mut world = world(limits).await;
    let requests: Vec<u8> = (0..2_000).flat_map(|_| frame(&[b'b', 255])).collect();
    // The socket's buffers take some; then the server stops reading, and so does this write.
    let _ = tokio::time::timeout(PATIENCE, world.client.write_all(&requests))
        .await
        .expect("no hang");
    let seen = world.toy.seen.lock().unwrap().len();
    assert!(
        seen < 2_000,
        "{seen} answers of 255 KiB were made for a client that reads none"
    );
    assert!(matches!(world.close().await, Close::NotRead));
}

#[tokio::test]
async fn bytes_that_stop_coming_cost_the_connection_but_only_the_memory_received() {
    let limits = Limits {
        stall_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let mut world = world(limits).await;
    world
        .client
        .write_all(&(50_u32 << 20).to_be_bytes())
        .await
        .unwrap();
    world.client.write_all(b"a few bytes").await.unwrap();
    let shared = Arc::clone(&world.shared);
    assert!(matches!(world.close().await, Close::Stalled));
    assert_eq!(
        shared.requests.available(),
        RequestBudget::new(shared.limits.request_budget_bytes).available()
    );
}

#[tokio::test]
async fn garbage_is_refused_before_a_byte_of_its_body() {
    for (bytes, hint) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "HTTP"),
        (&[0x16, 3, 1, 0, 5, 1, 0, 0], "TLS"),
        (&[0, 0, 0, 0], "frame of 0"),
        (&[0xff, 0xff, 0xff, 0xff], "frame of -1"),
        (&[0x7f, 0xff, 0xff, 0xff], "limit"),
    ] {
        let mut world = world(Limits::default()).await;
        world.client.write_all(bytes).await.unwrap();
        let close = world.close().await;
        assert!(
            close.is_expulsion() && close.to_string().contains(hint),
            "{close}"
        );
    }
}

#[tokio::test]
async fn a_large_request_arrives_whole_and_waits_for_memory_that_others_hold() {
    let limits = Limits {
        request_budget_bytes: 4 << 20,
        ..Limits::default()
    };
    let mut world = world(limits).await;
    let held = world
        .shared
        .requests
        .try_take(3 << 20)
        .expect("most of the budget");
    let mut body = vec![7; 3 << 20];
    body[0] = b'e';
    let request = frame(&body);
    let (mut read, mut write) = world.client.split();
    let send = async { write.write_all(&request).await.unwrap() };
    let receive = async {
        // Meanwhile nothing comes back, since nothing is read.
        let len = tokio::time::timeout(Duration::from_millis(50), read.read_u32()).await;
        assert!(len.is_err());
        drop(held);
        let mut answer = vec![0; 4 + (3 << 20) - 1];
        tokio::time::timeout(PATIENCE, read.read_exact(&mut answer))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(answer[4..], body[1..]);
    };
    tokio::join!(send, receive);
}

#[tokio::test]
async fn after_a_half_close_what_is_durable_is_answered_and_what_is_parked_is_dropped() {
    let mut world = world(Limits::default()).await;
    world.send(b"d\x01").await;
    world.send(b"p1").await;
    world.seen(2).await;
    world.client.shutdown().await.unwrap();
    world.shared.durable.advance(Lsn(1));
    assert_eq!(world.receive().await, b"\x01");
    assert!(matches!(world.close().await, Close::Eof));
}

#[tokio::test]
async fn a_drain_answers_what_is_in_flight_and_a_cut_does_not_wait() {
    let mut world_a = world(Limits::default()).await;
    world_a.send(b"d\x01").await;
    world_a.seen(1).await;
    world_a.shared.shutdown.enter(Phase::Draining);
    world_a.shared.durable.advance(Lsn(1));
    assert_eq!(world_a.receive().await, b"\x01");
    assert!(matches!(world_a.close().await, Close::Drained));

    let mut world_b = world(Limits::default()).await;
    world_b.send(b"p1").await;
    world_b.seen(1).await;
    world_b.shared.shutdown.enter(Phase::Cut);
    assert!(matches!(world_b.close().await, Close::Cut));
}

#[tokio::test]
async fn a_client_that_never_stops_asking_does_not_hold_up_the_end() {
    let limits = Limits {
        shutdown_grace: Duration::from_millis(50),
        ..Limits::default()
    };
    let world = world(limits).await;
    let World {
        mut client,
        shared,
        server,
        ..
    } = world;
    let asking = tokio::spawn(async move {
        let request = frame(b"eagain").repeat(50);
        let mut answers = vec![0; 10 * 50];
        // Always fifty requests ahead, so that the connection is never idle.
        while client.write_all(&request).await.is_ok() && client.read_exact(&mut answers[10..]).await.is_ok()
        {
        }
    });
    shared.shutdown.enter(Phase::Draining);
    let close = tokio::time::timeout(PATIENCE, server)
        .await
        .expect("the connection to end")
        .unwrap();
    assert!(matches!(close, Close::Drained), "{close}");
    asking.await.unwrap();
}

#[tokio::test]
async fn a_failed_store_acknowledges_nothing() {
    let mut world = world(Limits::default()).await;
    world.send(b"d\x01").await;
    world.seen(1).await;
    world.shared.durable.fail();
    assert!(matches!(world.close().await, Close::Failed(_)));
}

#[tokio::test]
async fn silence_ends_a_connection_only_after_the_idle_time() {
    let limits = Limits {
        idle_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let mut world = world(limits).await;
    world.send(b"p1").await;
    world.seen(1).await;
    // A parked request is not idleness, however long it takes.
    let early = tokio::time::timeout(Duration::from_millis(200), world.client.read_u8()).await;
    assert!(early.is_err());
    world.toy.release.notify_one();
    assert_eq!(world.receive().await, b"1");
    assert!(matches!(world.close().await, Close::Idle));
}
