//! Where the demo runs: a broker of its own in a temporary folder, or one that runs already. What was made goes again.

use anabranch_server::{Config, Running, Server, Storage};
use rdkafka::ClientConfig;
use rdkafka::error::RDKafkaErrorCode;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::client::{Admin, AdminApi, AdminUrl, ApiError, Connection, NewTopic};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::time::now_ms;

/// Segment size of the demo's own broker: its data is small, and the folder may lie in memory.
const SEGMENT_BYTES: u64 = 16 << 20;

/// What the topic is to be.
pub(crate) struct Made {
    /// What is set on it.
    pub(crate) settings: &'static [(&'static str, &'static str)],
    /// How many partitions; the broker's choice if not given.
    pub(crate) partitions: Option<i32>,
}

/// A broker with a topic.
pub(crate) struct Place {
    connection: Connection,
    /// The broker's administration API, if it may have one.
    pub(crate) api: Option<AdminApi>,
    /// The topic.
    pub(crate) topic: String,
    /// The group that reads it.
    pub(crate) group: String,
    own: Option<Own>,
}

impl Place {
    /// Starts a broker, or takes the one that `connection` names, and creates the topic there.
    pub(crate) fn open(connection: &Connection, admin: &AdminUrl, made: &Made) -> Outcome<Place> {
        let (connection, api, own) = if connection.is_named() {
            let told = admin.is_given() || connection.is_local();
            (connection.clone(), told.then(|| admin.open()).transpose()?, None)
        } else {
            let own = Own::start()?;
            let api = own.http.as_deref().map(AdminApi::at).transpose()?;
            (connection.at(own.kafka.clone()), api, Some(own))
        };
        let name = match own {
            Some(_) => "orders".to_owned(),
            // Nothing that exists is touched.
            None => format!("anabranch-demo-{}-{}", std::process::id(), now_ms()),
        };
        let place = Place {
            api,
            connection,
            group: if own.is_some() {
                "billing".to_owned()
            } else {
                name.clone()
            },
            topic: name,
            own,
        };
        place.create_topic(made)?;
        Ok(place)
    }

    /// Creates the topic; without its settings where the broker does not know what they are.
    fn create_topic(&self, made: &Made) -> Outcome {
        let admin = Admin::connect(&self.connection)?;
        let owned = made
            .settings
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let created = match self.try_topic(&admin, made.partitions, owned.collect())? {
            Err(error) if error.is(RDKafkaErrorCode::InvalidConfig) => {
                output::say("this broker has no setting elastic.mode; nothing will be elastic");
                self.try_topic(&admin, made.partitions, Vec::new())?
            }
            created => created,
        };
        created.map_err(|error| crate::topic::topic_failure(&error, &self.topic, "create"))
    }

    fn try_topic(
        &self,
        admin: &Admin,
        partitions: Option<i32>,
        config: Vec<(String, String)>,
    ) -> Outcome<Result<(), ApiError>> {
        let topic = NewTopic {
            name: self.topic.clone(),
            partitions,
            replicas: None,
            config,
        };
        let results = admin.create_topics(&[topic])?;
        Ok(results
            .into_iter()
            .find_map(|(_, result)| result.err())
            .map_or(Ok(()), Err))
    }

    /// The broker's address.
    pub(crate) fn address(&self) -> &str {
        self.connection.broker()
    }

    /// Whether the broker is the demo's own.
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// What a client of this broker starts from.
    pub(crate) fn client(&self) -> Outcome<ClientConfig> {
        self.connection.config()
    }

    /// Ends the demo's own broker, or deletes topic and group of one that goes on.
    pub(crate) fn close(mut self) -> Outcome {
        match self.own.take() {
            Some(own) => own.stop(),
            None => self.clean(),
        }
    }

    fn clean(&self) -> Outcome {
        let admin = Admin::connect(&self.connection)?;
        let topics = admin.delete_topics(std::slice::from_ref(&self.topic))?;
        let groups = admin.delete_groups(std::slice::from_ref(&self.group))?;
        for (name, result) in topics.into_iter().chain(groups) {
            if let Err(error) = result {
                output::say(&format!("could not delete {name}: {}", error.sentence()));
            }
        }
        Ok(())
    }
}

/// A broker in this process, so that it cannot outlive it. The order of the fields is the order in which they go.
struct Own {
    running: Option<Running>,
    runtime: Runtime,
    kafka: String,
    http: Option<String>,
    _folder: TempDir,
}

impl Own {
    fn start() -> Outcome<Own> {
        let folder = tempfile::Builder::new()
            .prefix("anabranch-demo-")
            .tempdir()
            .map_err(|error| Failure::failed(format!("cannot make a temporary folder: {error}")))?;
        let config = Config {
            data_dir: folder.path().to_owned(),
            http: Some("127.0.0.1:0".to_owned()),
            storage: Storage {
                segment_bytes: SEGMENT_BYTES,
                ..Storage::default()
            },
            ..Config::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("anabranch")
            .enable_all()
            .build()
            .map_err(|error| Failure::failed(format!("cannot start threads: {error}")))?;
        let running = runtime
            .block_on(Server::start(config.listen("127.0.0.1:0")))
            .map_err(|error| {
                Failure::failed(format!(
                    "cannot start a broker in {}: {error}",
                    folder.path().display()
                ))
                .hint("the environment variable TMPDIR names another place for temporary folders")
            })?;
        let kafka = running.addresses().first().map(ToString::to_string);
        let kafka = kafka.ok_or_else(|| Failure::failed("the broker has no address"))?;
        Ok(Own {
            http: running.http_address().map(|address| address.to_string()),
            kafka,
            running: Some(running),
            runtime,
            _folder: folder,
        })
    }

    fn stop(mut self) -> Outcome {
        self.shutdown()
    }

    fn shutdown(&mut self) -> Outcome {
        let Some(running) = self.running.take() else {
            return Ok(());
        };
        let ended = self.runtime.block_on(running.shutdown());
        ended.map_err(|failure| Failure::failed(format!("the broker did not end in good order: {failure}")))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // Only after a failure, which is reported already.
        let _ = self.shutdown();
    }
}
