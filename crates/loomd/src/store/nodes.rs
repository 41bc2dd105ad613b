//! `loomd nodes`: the nodes that share a database, as a table or as JSON.

use std::io::{self, Write, stdout};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use loomd_store::NodeRow;
use loomd_store_postgres::{Options, PostgresStore};
use serde_json::json;

use super::required_address;
use crate::cli::TopOverrides;
use crate::setup::block_on;

#[derive(Args)]
pub struct Nodes {
    /// The database, as postgres://USER@HOST:PORT/DATABASE [default: LOOMD_STORE, or `store` in the table `loomd` of
    /// config.toml]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(top: TopOverrides, arguments: Nodes) -> Result<ExitCode> {
    let address = required_address(arguments.store, top)?;
    block_on(async {
        let nodes = PostgresStore::new(Options::new(address)).nodes().await?;
        print(&nodes, arguments.json, &mut stdout().lock())?;
        Ok(ExitCode::SUCCESS)
    })
}

pub fn print(nodes: &[NodeRow], json: bool, out: &mut impl Write) -> io::Result<()> {
    let text = if json { as_json(nodes) } else { as_table(nodes) };
    out.write_all(text.as_bytes())
}

/// What a node does: it takes threads, it lets them go, or its session has expired.
pub fn state(node: &NodeRow) -> &'static str {
    match (node.expires_in_ms, node.draining) {
        (..=0, _) => "expired",
        (_, true) => "draining",
        _ => "live",
    }
}

fn as_json(nodes: &[NodeRow]) -> String {
    let object = |node: &NodeRow| {
        json!({
            "session": node.session.to_string(),
            "url": node.facts.url,
            "labels": node.facts.labels,
            "state": state(node),
            "threads": node.threads,
            "expiresInMs": node.expires_in_ms,
        })
    };
    let all: Vec<_> = nodes.iter().map(object).collect();
    format!("{:#}\n", serde_json::Value::Array(all))
}

fn as_table(nodes: &[NodeRow]) -> String {
    let mut rows = vec![["URL", "LABELS", "STATE", "THREADS", "EXPIRES IN"].map(str::to_owned)];
    for node in nodes {
        let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        rows.push([
            or_none(printable(node.facts.url.as_deref().unwrap_or_default())),
            or_none(printable(&node.facts.labels.join(","))),
            state(node).to_owned(),
            node.threads.to_string(),
            if node.expires_in_ms > 0 { format!("{} s", (node.expires_in_ms + 999) / 1000) } else { "-".to_owned() },
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..5).map(width).collect();
    let line = |row: &[String; 5]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            3 => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// A text of another node without control characters.
fn printable(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use loomd_store::NodeFacts;

    use super::*;

    fn node(url: Option<&str>, labels: &[&str], draining: bool, threads: i64, expires_in_ms: i64) -> NodeRow {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let facts = NodeFacts { url: url.map(ToOwned::to_owned), labels };
        NodeRow { session: Default::default(), facts, draining, threads, expires_in_ms }
    }

    #[test]
    fn nodes_are_shown_in_columns() {
        let nodes = [
            node(Some("ws://10.0.0.1:4500"), &["gpu", "eu"], false, 12, 14_200),
            node(Some("ws://10.0.0.2:4500\u{1b}[2J"), &[], true, 3, 900),
            node(None, &[], false, 0, -5),
        ];
        let expected = "\
URL                    LABELS  STATE     THREADS  EXPIRES IN
ws://10.0.0.1:4500     gpu,eu  live           12  15 s
ws://10.0.0.2:4500[2J  -       draining        3  1 s
-                      -       expired         0  -
";
        assert_eq!(as_table(&nodes), expected);
        let shown: serde_json::Value = serde_json::from_str(&as_json(&nodes)).unwrap();
        assert_eq!(shown[1]["state"], "draining");
        assert_eq!(shown[0]["labels"], json!(["gpu", "eu"]));
        assert_eq!((&shown[2]["url"], &shown[2]["expiresInMs"]), (&json!(null), &json!(-5)));
    }
}
