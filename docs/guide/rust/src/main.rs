//! Works on orders as a member of the group "billing", until it is told to stop: billing NAME

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::BorrowedMessage;
use rdkafka::{ClientConfig, Message};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

fn main() -> Result<(), Box<dyn Error>> {
    let name = env::args().nth(1).ok_or("usage: billing NAME")?;
    let bootstrap = env::var("BOOTSTRAP_SERVERS").unwrap_or_else(|_| "127.0.0.1:9092".into());
    let stopped = Arc::new(AtomicBool::new(false));
    flag::register(SIGINT, Arc::clone(&stopped))?;
    flag::register(SIGTERM, Arc::clone(&stopped))?;

    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "billing")
        .set("client.id", format!("billing-{name}"))
        .set("auto.offset.reset", "earliest")
        // Commits once a second, but only what was worked on: that is what `store_offset_from_message` says.
        .set("auto.commit.interval.ms", "1000")
        .set("enable.auto.offset.store", "false")
        .create()?;
    consumer.subscribe(&["orders"])?;
    while !stopped.load(Ordering::Relaxed) {
        if let Some(message) = consumer.poll(Duration::from_millis(200)) {
            let message = message?;
            work(&name, &message);
            consumer.store_offset_from_message(&message)?;
        }
    }
    // Dropping the consumer commits, and leaves the group at once.
    Ok(())
}

fn work(name: &str, message: &BorrowedMessage) {
    thread::sleep(Duration::from_millis(1));
    let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    println!("{name} {} {}", text(message.key()), text(message.payload()));
}
