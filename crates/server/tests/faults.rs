//! When the disk fails or fills, when the server ends, and what is said over HTTP meanwhile.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anabranch_server::{Config, Server, StartError};
use anabranch_store::{Access, DirEntry, Disk, DiskFile, LockError, LockGuard, RealDisk};
use anabranch_wire::msg::*;
use common::group::{LIBRDKAFKA, Member, numbered};
use common::*;
use tokio::net::TcpStream;

/// A real disk with three switches.
struct FaultyDisk {
    fail_sync: Arc<AtomicBool>,
    hold_sync: Arc<AtomicBool>,
    free_bytes: Arc<AtomicU64>,
}

struct FaultyFile {
    file: Arc<dyn DiskFile>,
    fail_sync: Arc<AtomicBool>,
    hold_sync: Arc<AtomicBool>,
}

impl FaultyDisk {
    fn new() -> Self {
        Self {
            fail_sync: Arc::default(),
            hold_sync: Arc::default(),
            free_bytes: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// What switches the holding of syncs.
    fn hold(&self) -> Hold {
        Hold(Arc::clone(&self.hold_sync))
    }

    fn wrap(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(FaultyFile {
            file,
            fail_sync: Arc::clone(&self.fail_sync),
            hold_sync: Arc::clone(&self.hold_sync),
        })
    }
}

/// Lets syncs wait. A test that fails meanwhile lets go of them: its server, and the runtime, end only when they have.
struct Hold(Arc<AtomicBool>);

impl Hold {
    /// Syncs wait until the guard is dropped.
    fn on(&self) -> Held<'_> {
        self.0.store(true, Ordering::SeqCst);
        Held(&self.0)
    }
}

struct Held<'a>(&'a AtomicBool);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl DiskFile for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<()> {
        self.file.read_at(buf, position)
    }

    fn write_at(&self, buf: &[u8], position: u64) -> io::Result<()> {
        self.file.write_at(buf, position)
    }

    fn sync_data(&self) -> io::Result<()> {
        while self.hold_sync.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if self.fail_sync.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is on fire"));
        }
        self.file.sync_data()
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.file.allocate(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(RealDisk.open(path, access)?))
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(RealDisk.create(path, access)?))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        RealDisk.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>, LockError> {
        RealDisk.lock(path)
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        Ok(self.free_bytes.load(Ordering::SeqCst))
    }

    fn random(&self) -> u64 {
        RealDisk.random()
    }
}

#[tokio::test]
async fn after_a_failed_sync_nothing_is_acknowledged_and_the_server_says_that_it_must_end() {
    let disk = FaultyDisk::new();
    let fail = Arc::clone(&disk.fail_sync);
    let server = TestServer::on(disk, http_too).await;
    let http = server.http();
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    assert_eq!(client.produce("t", 0, batch(&["safe"])).await.error_code, 0);
    assert!(http_get(http, "/readyz").await.starts_with("HTTP/1.1 200"));
    fail.store(true, Ordering::SeqCst);
    client.send(9, &produce("t", 0, -1, batch(&["lost"]))).await;
    let failure = soon(server.running.failed()).await;
    assert!(failure.to_string().contains("on fire"), "{failure}");
    client.expect_end().await;
    assert!(http_get(http, "/readyz").await.starts_with("HTTP/1.1 503"));
    assert!(http_get(http, "/healthz").await.starts_with("HTTP/1.1 200"));
    let TestServer { running, folder } = server;
    assert_eq!(soon(running.shutdown()).await, Err(failure));
    let again = TestServer::again(folder).await;
    let mut client = again.client().await;
    assert_eq!(values(&client.fetch("t", 0, 0, 0).await)[0], "safe");
    assert_eq!(client.produce("t", 0, batch(&["new"])).await.error_code, 0);
}

#[tokio::test]
async fn an_order_about_queues_is_acknowledged_when_it_is_durable_and_not_before() {
    let disk = FaultyDisk::new();
    let (hold, fail) = (disk.hold(), Arc::clone(&disk.fail_sync));
    let server = TestServer::on(disk, http_too).await;
    let http = server.http();
    let mut client = server.client().await;
    client.create_topic("t", 8, &[("elastic.mode", "queues")]).await;
    let wish = |count: u32| {
        let body = format!("{{\"count\":{count}}}");
        tokio::spawn(async move { http_post(http, "/api/v1/topics/t/queues/wish", &body).await })
    };
    let held = hold.on();
    let waiting = wish(4);
    // It is done, and everybody sees it, but for who waits for the word that it stays.
    let is_done = async || {
        let answer = http_get(http, "/api/v1/topics/t/queues").await;
        answer.contains("\"read\":4")
    };
    until(is_done).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!waiting.is_finished());
    drop(held);
    let answer = soon(waiting).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    fail.store(true, Ordering::SeqCst);
    let answer = soon(wish(5)).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("nothing is acknowledged any more"),
        "{answer}"
    );
}

#[tokio::test]
async fn an_order_to_split_or_merge_is_acknowledged_when_it_is_durable_and_not_before() {
    let disk = FaultyDisk::new();
    let (hold, fail) = (disk.hold(), Arc::clone(&disk.fail_sync));
    let server = TestServer::on(disk, http_too).await;
    let http = server.http();
    let mut admin = server.client().await;
    // Only an order divides it.
    let settings = [("elastic.split.min.remaining", "1000000")];
    admin.create_topic("t", 1, &settings).await;
    assert_eq!(admin.produce("t", 0, numbered(0..500)).await.error_code, 0);
    let mut owner = Member::enter(&server, LIBRDKAFKA).await;
    assert_eq!(owner.position().await, Some(-1));
    owner.commit(0).await;
    let mut idle = Member::enter(&server, LIBRDKAFKA).await;
    let order = |what: &str, dry_run: bool| {
        let path = format!("/api/v1/groups/g/{what}");
        let body = format!("{{\"topic\":\"t\",\"partition\":0,\"dry_run\":{dry_run}}}");
        tokio::spawn(async move { http_post(http, &path, &body).await })
    };
    soon(async {
        while !order("split", true).await.unwrap().contains("\"split\"") {
            // Whose the partition is depends on their ids.
            for member in [&mut owner, &mut idle] {
                member.follow().await;
                member.position().await;
            }
        }
    })
    .await;
    let decided = async || {
        http_get(http, "/api/v1/decisions?group=g")
            .await
            .contains("\"split\"")
    };
    let held = hold.on();
    let waiting = order("split", false);
    until(decided).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!waiting.is_finished());
    drop(held);
    let answer = soon(waiting).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("\"split\""),
        "{answer}"
    );
    fail.store(true, Ordering::SeqCst);
    // The next entry for the disk, whatever it is, ends the store.
    let _ = http_post(http, "/api/v1/groups/g/pause", "").await;
    let answer = soon(order("merge", false)).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("nothing is acknowledged any more"),
        "{answer}"
    );
}

/// Answers wait for the disk, and on a connection they keep their order: a member whose commit waits gets no answer to the
/// heartbeat behind it, and sends no further one. It is silent because of the broker, and keeps its place; one that is silent
/// of its own accord loses it.
#[tokio::test]
async fn a_member_keeps_its_place_while_the_disk_stands_still() {
    const SESSION_MS: i32 = 1_500;
    let disk = FaultyDisk::new();
    let hold = disk.hold();
    let server = TestServer::on(disk, |config| {
        let key = "group.min.session.timeout.ms".to_owned();
        config.broker.insert(key, SESSION_MS.to_string());
    })
    .await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let joined = client
        .call(
            3,
            &JoinGroupRequest {
                group_id: "g".to_owned(),
                session_timeout_ms: SESSION_MS,
                rebalance_timeout_ms: 60_000,
                protocol_type: "consumer".to_owned(),
                protocols: vec![join_group::JoinGroupRequestProtocol {
                    name: "range".to_owned(),
                    metadata: vec![0, 0, 0, 0, 0, 1, 0, 1, b't', 0xff, 0xff, 0xff, 0xff].into(),
                }],
                ..Default::default()
            },
        )
        .await;
    assert_eq!(joined.error_code, 0, "{joined:?}");
    let (group_id, member_id) = ("g".to_owned(), joined.member_id.clone());
    let sync = SyncGroupRequest {
        group_id: group_id.clone(),
        generation_id: joined.generation_id,
        member_id: member_id.clone(),
        ..Default::default()
    };
    assert_eq!(client.call(3, &sync).await.error_code, 0);
    let heartbeat = HeartbeatRequest {
        group_id: group_id.clone(),
        generation_id: joined.generation_id,
        member_id: member_id.clone(),
        ..Default::default()
    };
    let commit = OffsetCommitRequest {
        group_id,
        generation_id_or_member_epoch: joined.generation_id,
        member_id,
        topics: vec![offset_commit::OffsetCommitRequestTopic {
            name: "t".to_owned(),
            partitions: vec![offset_commit::OffsetCommitRequestPartition::default()],
            ..Default::default()
        }],
        ..Default::default()
    };
    for _ in 0..2 {
        let held = hold.on();
        let committing = client.send(5, &commit).await;
        let waiting = client.send(3, &heartbeat).await;
        tokio::time::sleep(Duration::from_millis(4_000)).await;
        drop(held);
        let committed = client.receive::<OffsetCommitRequest>(committing, 5).await;
        assert_eq!(committed.topics[0].partitions[0].error_code, 0);
        assert_eq!(client.receive::<HeartbeatRequest>(waiting, 3).await.error_code, 0);
        assert_eq!(client.call(3, &heartbeat).await.error_code, 0, "it was expelled");
    }
    tokio::time::sleep(Duration::from_millis(SESSION_MS as u64 + 1_000)).await;
    assert_eq!(
        client.call(3, &heartbeat).await.error_code,
        25,
        "nobody looks any more"
    );
}

#[tokio::test]
async fn a_disk_that_fills_up_refuses_produces_until_there_is_room_again() {
    let disk = FaultyDisk::new();
    let free = Arc::clone(&disk.free_bytes);
    let server = TestServer::on(disk, |config| config.storage.free_bytes_min = 1_000_000).await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    assert_eq!(client.produce("t", 0, batch(&["x"])).await.error_code, 0);
    free.store(10, Ordering::SeqCst);
    soon(async { while client.produce("t", 0, batch(&["x"])).await.error_code != 56 {} }).await;
    // What does not grow the log goes on.
    assert!(!values(&client.fetch("t", 0, 0, 0).await).is_empty());
    free.store(u64::MAX, Ordering::SeqCst);
    soon(async { while client.produce("t", 0, batch(&["x"])).await.error_code != 0 {} }).await;
}

#[tokio::test]
async fn a_draining_server_refuses_new_work_with_codes_that_clients_retry() {
    let server = TestServer::with(|config| config.limits.shutdown_grace = Duration::from_secs(60)).await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let address = server.address();
    let ending = tokio::spawn(server.running.shutdown());
    // Nobody new gets in once the listener is gone.
    soon(async { while TcpStream::connect(address).await.is_ok() {} }).await;
    assert_eq!(client.produce("t", 0, batch(&["x"])).await.error_code, 6);
    let heartbeat = HeartbeatRequest {
        group_id: "g".to_owned(),
        ..Default::default()
    };
    assert_eq!(client.call(3, &heartbeat).await.error_code, 16);
    assert_eq!(
        client.call(7, &create_topic("u", 1, &[])).await.topics[0].error_code,
        41
    );
    // A fetch does not wait any more.
    assert_eq!(client.fetch("t", 0, 0, 500_000).await.error_code, 0);
    drop(client);
    soon(ending).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let server = TestServer::start().await;
    let config = |address: String| {
        Config {
            data_dir: server.folder().to_owned(),
            ..Config::default()
        }
        .listen(address)
    };
    let refused = |started: Result<anabranch_server::Running, StartError>| match started {
        Ok(_) => panic!("it started"),
        Err(error) => error.to_string(),
    };
    let taken = refused(Server::start(config(server.address().to_string())).await);
    assert!(
        taken.contains("cannot listen on") && taken.contains(&server.address().to_string()),
        "{taken}"
    );
    let locked = refused(Server::start(config("127.0.0.1:0".to_owned())).await);
    assert!(
        locked.contains("in use") && locked.contains(&server.folder().display().to_string()),
        "{locked}"
    );
    let none = refused(Server::start(Config::default()).await);
    assert!(none.contains("no listener"), "{none}");
    let mut odd = config("127.0.0.1:0".to_owned());
    odd.broker.insert("num.partitons".to_owned(), "3".to_owned());
    let odd = refused(Server::start(odd).await);
    assert!(odd.contains("num.partitions"), "{odd}");
}

#[tokio::test]
async fn a_wildcard_listener_tells_clients_what_they_dialled() {
    let server = TestServer::with(|config| {
        config.listeners.clear();
        *config = config.clone().listen("0.0.0.0:0").listen("[::]:0");
    })
    .await;
    for (address, host) in server
        .running
        .addresses()
        .to_vec()
        .iter()
        .zip(["127.0.0.1", "::1"])
    {
        let dialled = std::net::SocketAddr::new(host.parse().unwrap(), address.port());
        let mut client = Client::connect(dialled).await;
        let metadata = client.call(9, &MetadataRequest::default()).await;
        let broker = &metadata.brokers[0];
        assert_eq!(
            (broker.host.as_str(), broker.port),
            (host, i32::from(address.port()))
        );
    }
}
