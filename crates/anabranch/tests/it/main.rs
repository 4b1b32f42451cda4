//! The program from outside: what a person types, sees, and can rely on.
//!
//! All of it in one test binary, which links once. `ANABRANCH_TEST_BROKER=HOST:PORT` points the client commands at
//! another broker, to see whether an expectation holds for Kafka as well.

#[cfg(test)]
mod broker;
#[cfg(test)]
mod care;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod elastic;
#[cfg(test)]
mod groups;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod running;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod support;
#[cfg(test)]
mod top;
#[cfg(test)]
mod usage;
