//! Test help: topics that exist because a test says so.

use super::*;
use crate::ids::TopicId;

/// Topics of a test. A topic's id is its name, padded, and a number that grows when it is made anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestTopics {
    rows: Vec<(String, TopicId, i32)>,
    /// Ends of logs.
    pub(crate) ends: std::collections::BTreeMap<(TopicId, i32), i64>,
    /// The read queue count of all topics, if they are in queue mode.
    pub(crate) read_queues: Option<i32>,
    /// What all topics go by.
    pub(crate) elastic: crate::elastic::ElasticSettings,
    /// Why no topic may be divided.
    pub(crate) excluded: Option<String>,
    made: u8,
}

impl TestTopics {
    pub(crate) fn of(topics: &[(&str, i32)]) -> Self {
        let mut table = Self::default();
        for (name, partitions) in topics {
            table.create(name, *partitions);
        }
        table
    }

    pub(crate) fn create(&mut self, name: &str, partitions: i32) -> TopicId {
        self.made += 1;
        let mut id = [0; 16];
        id[..name.len().min(14)].copy_from_slice(&name.as_bytes()[..name.len().min(14)]);
        id[15] = self.made;
        self.rows.push((name.to_owned(), TopicId(id), partitions));
        self.rows.sort();
        TopicId(id)
    }

    pub(crate) fn grow(&mut self, name: &str, partitions: i32) {
        self.rows.iter_mut().find(|row| row.0 == name).unwrap().2 = partitions;
    }

    pub(crate) fn delete(&mut self, name: &str) {
        self.rows.retain(|row| row.0 != name);
    }

    pub(crate) fn id(&self, name: &str) -> TopicId {
        self.by_name(name).unwrap().id
    }
}

impl Topics for TestTopics {
    fn by_name(&self, name: &str) -> Option<TopicView<'_>> {
        self.rows.iter().find(|row| row.0 == name).map(view)
    }
    fn by_id(&self, id: TopicId) -> Option<TopicView<'_>> {
        self.rows.iter().find(|row| row.1 == id).map(view)
    }
    fn each(&self, visit: &mut dyn FnMut(TopicView<'_>)) {
        self.rows.iter().map(view).for_each(visit);
    }
    fn log_end(&self, topic: TopicId, partition: i32) -> i64 {
        self.ends.get(&(topic, partition)).copied().unwrap_or(0)
    }
    fn log_start(&self, _: TopicId, _: i32) -> i64 {
        0
    }
    fn next_offset(&self, topic: TopicId, partition: i32) -> i64 {
        self.log_end(topic, partition)
    }
    fn read_queues(&self, _: TopicId) -> Option<i32> {
        self.read_queues
    }
    fn elastic_mode(&self, _: &str, _: TopicId) -> crate::elastic::Mode {
        self.elastic.mode
    }
    fn commit_evidence(&self, _: &str, _: TopicId) -> crate::elastic::CommitEvidence {
        self.elastic.evidence
    }
    fn elastic(&self, _: &str, _: TopicId) -> crate::elastic::ElasticSettings {
        self.elastic.clone()
    }
    fn elastic_group(&self, _: &str) -> crate::elastic::GroupElasticSettings {
        crate::elastic::GroupElasticSettings::default()
    }
    fn excluded_from_division(&self, _: TopicId) -> Option<String> {
        self.excluded.clone()
    }
}

fn view(row: &(String, TopicId, i32)) -> TopicView<'_> {
    TopicView {
        id: row.1,
        name: &row.0,
        partitions: row.2,
    }
}
