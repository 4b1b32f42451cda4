//! A server in a fresh folder, and a raw client that says exactly what a test wants it to say.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses its own part of this"
)]

pub mod group;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_server::{Config, Running, Server};
use anabranch_store::{Disk, RealDisk};
use anabranch_wire::batch::{BatchBuilder, Compression, DecompressLimits};
use anabranch_wire::frame::{decode_response, encode_request};
use anabranch_wire::msg::*;
use anabranch_wire::prim::{Records, Request};
use bytes::Bytes;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Upper bound for anything that must happen; far above what it takes.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for what must happen.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("it happens in time")
}

/// Waits until it is so.
pub async fn until(is_so: impl AsyncFn() -> bool) {
    soon(async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A server that runs in a folder of its own.
pub struct TestServer {
    pub running: Running,
    pub folder: TempDir,
}

impl TestServer {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::on(RealDisk, change).await
    }

    /// Starts with an HTTP listener.
    pub async fn with_http() -> Self {
        Self::with(http_too).await
    }

    /// Starts on a disk of the test's own.
    pub async fn on(disk: impl Disk + 'static, change: impl FnOnce(&mut Config)) -> Self {
        // What the server says is shown with a test that fails.
        let _ = tracing_subscriber::fmt().with_test_writer().try_init();
        let folder = tempfile::tempdir().unwrap();
        let running = run(folder.path(), Arc::new(disk), change).await;
        Self { running, folder }
    }

    /// Starts in a folder that was used before.
    pub async fn again(folder: TempDir) -> Self {
        let running = run(folder.path(), Arc::new(RealDisk), |_| {}).await;
        Self { running, folder }
    }

    pub fn address(&self) -> SocketAddr {
        self.running.addresses()[0]
    }

    /// The address of the HTTP listener, which it was started with.
    pub fn http(&self) -> SocketAddr {
        self.running.http_address().unwrap()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.address()).await
    }

    /// Ends in good order and starts again in the same folder.
    pub async fn restart(self) -> Self {
        let Self { running, folder } = self;
        soon(running.shutdown()).await.unwrap();
        Self::again(folder).await
    }
}

async fn run(folder: &Path, disk: Arc<dyn Disk>, change: impl FnOnce(&mut Config)) -> Running {
    let mut config = Config {
        data_dir: folder.to_owned(),
        ..Config::default()
    }
    .listen("127.0.0.1:0");
    config.storage.segment_bytes = 1 << 20;
    config.storage.cache_bytes = 8 << 20;
    config.storage.direct_io = false;
    config.storage.free_bytes_min = 0;
    config.broker = BTreeMap::from([("num.partitions".to_owned(), "1".to_owned())]);
    change(&mut config);
    soon(Server::start_on(config, disk)).await.unwrap()
}

/// An HTTP listener beside that for Kafka's protocol.
pub fn http_too(config: &mut Config) {
    config.http = Some("127.0.0.1:0".to_owned());
}

/// Status and body of an answer over HTTP.
pub fn parts(answer: &str) -> (u16, &str) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
}

/// The answer to a GET, head and body.
pub async fn http_get(address: SocketAddr, path: &str) -> String {
    http(address, &format!("GET {path}"), "").await
}

/// The answer to a POST of a JSON document, head and body.
pub async fn http_post(address: SocketAddr, path: &str, body: &str) -> String {
    http(address, &format!("POST {path}"), body).await
}

/// The answer to a request with a Host and further header lines (each with its line end) of the test's own.
pub async fn http_with(address: SocketAddr, line: &str, head: &str, body: &str) -> String {
    let mut stream = soon(TcpStream::connect(address)).await.unwrap();
    let size = body.len();
    let head = format!("Connection: close\r\nContent-Type: application/json\r\n{head}");
    let request = format!("{line} HTTP/1.1\r\n{head}Content-Length: {size}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    answer
}

async fn http(address: SocketAddr, line: &str, body: &str) -> String {
    http_with(address, line, &format!("Host: {address}\r\n"), body).await
}

/// A client without manners.
pub struct Client {
    pub stream: TcpStream,
    /// What it calls itself.
    pub client_id: String,
    next: i32,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = soon(TcpStream::connect(address)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            client_id: "test".to_owned(),
            next: 1,
        }
    }

    /// Sends a request and reads its answer.
    pub async fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let id = self.send(version, request).await;
        self.receive::<R>(id, version).await
    }

    /// Sends a request; the answer is due under the id.
    pub async fn send<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        let id = self.next;
        self.next += 1;
        let frame = encode_request(id, Some(&self.client_id), request, version).unwrap();
        self.write(&frame.to_bytes()).await;
        id
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        soon(self.stream.write_all(bytes)).await.unwrap();
    }

    /// Reads the answer to the request of that id, which must be the next.
    pub async fn receive<R: Request>(&mut self, id: i32, version: i16) -> R::Response {
        let frame = self.frame().await.expect("an answer, not the end");
        let (got, response) = decode_response::<R::Response>(frame, version).unwrap();
        assert_eq!(got, id, "answers come in the order of requests");
        response
    }

    /// The next frame, or `None` at the end of the connection.
    pub async fn frame(&mut self) -> Option<Bytes> {
        soon(async {
            let length = self.stream.read_u32().await.ok()?;
            let mut frame = vec![0; length as usize];
            self.stream.read_exact(&mut frame).await.ok()?;
            Some(frame.into())
        })
        .await
    }

    /// Asserts that the server closes the connection without a further answer.
    pub async fn expect_end(mut self) {
        assert_eq!(self.frame().await, None, "the connection is closed");
    }

    /// Creates a topic with `partitions`.
    pub async fn create_topic(&mut self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> [u8; 16] {
        let response = self.call(7, &create_topic(name, partitions, configs)).await;
        assert_eq!(response.topics[0].error_code, 0, "{:?}", response.topics[0]);
        response.topics[0].topic_id
    }

    /// Produces one batch with acks=all and returns the answer for its partition.
    pub async fn produce(
        &mut self,
        topic: &str,
        partition: i32,
        records: Bytes,
    ) -> produce::PartitionProduceResponse {
        let response = self.call(9, &produce(topic, partition, -1, records)).await;
        response.responses[0].partition_responses[0].clone()
    }

    /// Fetches from one partition, version 12.
    pub async fn fetch(
        &mut self,
        topic: &str,
        partition: i32,
        offset: i64,
        wait_ms: i32,
    ) -> fetch::PartitionData {
        let response = self.call(12, &fetch(topic, partition, offset, wait_ms)).await;
        assert_eq!(response.error_code, 0);
        response.responses[0].partitions[0].clone()
    }
}

/// A batch with one record per value.
pub fn batch(values: &[&str]) -> Bytes {
    batch_with(values, Compression::None)
}

/// A compressed batch with one record per value.
pub fn batch_with(values: &[&str], compression: Compression) -> Bytes {
    let mut builder = BatchBuilder::new();
    builder.compression(compression, None);
    for (n, value) in values.iter().enumerate() {
        builder.append(1_000 + n as i64, Some(b"k"), Some(value.as_bytes()), &[]);
    }
    builder.finish().unwrap()
}

/// A produce of one batch.
pub fn produce(topic: &str, index: i32, acks: i16, records: Bytes) -> ProduceRequest {
    let partition_data = vec![produce::PartitionProduceData {
        index,
        records: Some(Records::from(records)),
    }];
    let topic_data = vec![produce::TopicProduceData {
        name: topic.to_owned(),
        partition_data,
        ..Default::default()
    }];
    ProduceRequest {
        acks,
        timeout_ms: 30_000,
        topic_data,
        ..Default::default()
    }
}

/// A fetch from one partition, min_bytes 1.
pub fn fetch(topic: &str, partition: i32, fetch_offset: i64, max_wait_ms: i32) -> FetchRequest {
    let partitions = vec![fetch::FetchPartition {
        partition,
        fetch_offset,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    }];
    let topics = vec![fetch::FetchTopic {
        topic: topic.to_owned(),
        partitions,
        ..Default::default()
    }];
    FetchRequest {
        max_wait_ms,
        min_bytes: 1,
        max_bytes: 10 << 20,
        topics,
        ..Default::default()
    }
}

/// A request for one new topic.
pub fn create_topic(name: &str, num_partitions: i32, configs: &[(&str, &str)]) -> CreateTopicsRequest {
    let configs = configs
        .iter()
        .map(|(name, value)| create_topics::CreatableTopicConfig {
            name: (*name).to_owned(),
            value: Some((*value).to_owned()),
        })
        .collect();
    let topic = create_topics::CreatableTopic {
        name: name.to_owned(),
        num_partitions,
        replication_factor: 1,
        configs,
        ..Default::default()
    };
    CreateTopicsRequest {
        topics: vec![topic],
        ..Default::default()
    }
}

/// The values of all records in a fetch answer.
pub fn values(data: &fetch::PartitionData) -> Vec<String> {
    let bytes = data.records.clone().unwrap_or_default().into_bytes();
    let mut values = Vec::new();
    for found in anabranch_wire::batch::BatchIter::new(&bytes) {
        let (position, header) = found.unwrap();
        let one = &bytes[position..position + header.size()];
        let set = anabranch_wire::batch::records(
            one,
            &DecompressLimits {
                bytes_max: 64 << 20,
                ratio_max: 10_000,
            },
        )
        .unwrap();
        for record in &set {
            values.push(String::from_utf8(record.unwrap().value.unwrap().to_vec()).unwrap());
        }
    }
    values
}

/// A topic by name, as a metadata request asks for it.
pub fn topic(name: &str) -> anabranch_wire::msg::metadata::MetadataRequestTopic {
    anabranch_wire::msg::metadata::MetadataRequestTopic {
        name: Some(name.to_owned()),
        ..Default::default()
    }
}
