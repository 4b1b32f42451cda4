//! `anabranch cluster`: which cluster this is, and its nodes.

use serde::Serialize;

use crate::client::{Admin, Connection, Node};
use crate::failure::Outcome;
use crate::output::{self, Format, Table};

const EXAMPLES: &str = "\
Examples:
  anabranch cluster
  anabranch cluster -b broker.example:9092 --format json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Serialize)]
struct Cluster {
    cluster_id: String,
    controller: Option<i32>,
    nodes: Vec<Node>,
    topics: usize,
    /// The release of Kafka whose protocol the broker says it speaks; brokers from Kafka 4.0 on no longer say.
    protocol: Option<String>,
}

pub(crate) fn run(args: &Args, format: Format) -> Outcome {
    let admin = Admin::connect(&args.connection)?;
    let (cluster_id, mut nodes, controller) = admin.describe_cluster()?;
    nodes.sort_by_key(|node| node.id);
    let id = controller.or(nodes.first().map(|node| node.id));
    let protocol = match id {
        Some(id) => admin.broker_config(id, "inter.broker.protocol.version")?,
        None => None,
    };
    let cluster = Cluster {
        protocol,
        cluster_id,
        controller,
        nodes,
        topics: admin.topic_names()?.len(),
    };
    match format {
        Format::Json => output::print_json(&cluster),
        Format::Text => output::print(&text(&cluster)),
    }
}

fn text(cluster: &Cluster) -> String {
    let mut table = Table::new(&["NODE", "ADDRESS", ""]);
    for node in &cluster.nodes {
        let role = if cluster.controller == Some(node.id) {
            "controller"
        } else {
            ""
        };
        table.row(vec![
            node.id.to_string(),
            format!("{}:{}", node.host, node.port),
            role.to_owned(),
        ]);
    }
    let mut text = format!("Cluster   {}\n", cluster.cluster_id);
    if let Some(protocol) = &cluster.protocol {
        text.push_str(&format!("Protocol  Kafka {protocol}\n"));
    }
    text.push_str(&format!("Topics    {}\n\n{}", cluster.topics, table.render()));
    text
}
