//! Topics that come and go while the broker dies.

use crate::journal::Journal;
use crate::{TOPICS, shared};
use anyhow::{Context, Result};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication, TopicResult};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::RDKafkaErrorCode;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// Creates the topics of the load.
pub(crate) fn create_topics(address: &str) -> Result<()> {
    let admin = client(address)?;
    for (topic, partitions) in TOPICS {
        create(
            &admin,
            NewTopic::new(topic, *partitions, TopicReplication::Fixed(1)),
        )?
        .map_err(refused)?;
    }
    let mut topic = NewTopic::new(shared::TOPIC, 1, TopicReplication::Fixed(1));
    for (key, value) in shared::SETTINGS {
        topic = topic.set(key, value);
    }
    create(&admin, topic)?.map_err(refused)?;
    Ok(())
}

fn refused((topic, code): (String, RDKafkaErrorCode)) -> anyhow::Error {
    anyhow::anyhow!("cannot create {topic}: {code}")
}

/// Creates and deletes small topics until told to stop, writing down what was acknowledged.
pub(crate) fn churn(address: &str, journal: &Arc<Journal>, stop: &AtomicBool, stretch: u64) -> Result<()> {
    let admin = client(address)?;
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let topic = format!("churn-{stretch}-{number}");
        let wish = NewTopic::new(&topic, 3, TopicReplication::Fixed(1));
        if create(&admin, wish).is_ok_and(|result| result.is_ok()) {
            journal.lock().topics.insert(topic);
        }
        if number >= 3 {
            let old = format!("churn-{stretch}-{}", number - 3);
            // From the moment of the wish the topic may be there or not; only an acknowledgement settles it.
            journal.lock().topics.remove(&old);
            if delete(&admin, &old).is_ok_and(|result| result.is_ok()) {
                journal.lock().deleted.insert(old);
            }
        }
        number += 1;
        thread::sleep(Duration::from_millis(40));
    }
    Ok(())
}

fn client(address: &str) -> Result<AdminClient<DefaultClientContext>> {
    ClientConfig::new()
        .set("bootstrap.servers", address)
        .set("reconnect.backoff.max.ms", "100")
        .create()
        .context("cannot create an admin client")
}

fn options() -> AdminOptions {
    AdminOptions::new()
        .request_timeout(Some(Duration::from_secs(2)))
        .operation_timeout(Some(Duration::from_secs(2)))
}

fn create(admin: &AdminClient<DefaultClientContext>, wish: NewTopic<'_>) -> Result<TopicResult> {
    wait(admin.create_topics(&[wish], &options()))?
        .into_iter()
        .next()
        .context("no answer for the topic")
}

fn delete(admin: &AdminClient<DefaultClientContext>, topic: &str) -> Result<TopicResult> {
    wait(admin.delete_topics(&[topic], &options()))?
        .into_iter()
        .next()
        .context("no answer for the topic")
}

/// Wakes the thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs one future to its end in this thread: all the runtime that an admin call needs.
fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = TaskContext::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
