//! `loomd usage`: what model calls used and cost, from the ledger of the home.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use jiff::civil::Date;
use loomd_ledger::{Group, Usage as Sum, today};
use serde_json::json;

use crate::cli;
use crate::setup::Setup;

#[derive(Args)]
pub struct Usage {
    /// What to sum up by
    #[arg(long, value_enum, default_value_t = By::Model)]
    by: By,
    /// The first day, as 2026-11-16; without it only today, in UTC
    #[arg(long, value_name = "DATE")]
    since: Option<Date>,
    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    Thread,
    Model,
    Day,
    Client,
}

impl By {
    fn group(self) -> Group {
        match self {
            Self::Thread => Group::Thread,
            Self::Model => Group::Model,
            Self::Day => Group::Day,
            Self::Client => Group::Client,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Model => "model",
            Self::Day => "day",
            Self::Client => "client",
        }
    }
}

pub fn run(top: cli::TopOverrides, arguments: Usage) -> Result<ExitCode> {
    let Setup { sources, .. } = Setup::new(&top.with(cli::Overrides::default()))?;
    let today = today(Timestamp::now());
    let since = arguments.since.unwrap_or(today);
    let ledger = loomd_server::ledger(&sources.home);
    let groups: Vec<(String, Sum)> = Sum::by(arguments.by.group(), ledger.entries(since..=today)).into_iter().collect();
    let text = match (arguments.json, arguments.csv) {
        (true, _) => as_json(arguments.by, since, today, &groups)?,
        (_, true) => as_csv(arguments.by, &groups),
        _ => as_table(arguments.by, since, today, &groups),
    };
    // A reader may close stdout early.
    _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn total(groups: &[(String, Sum)]) -> Sum {
    groups.iter().fold(Sum::default(), |sum, (_, group)| Sum {
        calls: sum.calls + group.calls,
        tokens: {
            let mut tokens = sum.tokens;
            tokens += group.tokens;
            tokens
        },
        price: [sum.price, group.price].into_iter().sum(),
        unpriced: sum.unpriced + group.unpriced,
    })
}

fn as_json(by: By, since: Date, until: Date, groups: &[(String, Sum)]) -> Result<String> {
    let object = |sum: &Sum| {
        json!({
            "calls": sum.calls,
            "inputTokens": sum.tokens.input,
            "cachedInputTokens": sum.tokens.cached_input,
            "cacheWriteInputTokens": sum.tokens.cache_write_input,
            "outputTokens": sum.tokens.output,
            "reasoningOutputTokens": sum.tokens.reasoning_output,
            "totalTokens": sum.tokens.total(),
            "dollars": sum.price.dollars(),
            "unpricedCalls": sum.unpriced,
        })
    };
    let groups_json: Vec<_> = groups
        .iter()
        .map(|(name, sum)| {
            let mut group = object(sum);
            group[by.name()] = name.as_str().into();
            group
        })
        .collect();
    let whole = json!({
        "since": since.to_string(), "until": until.to_string(), "groups": groups_json, "total": object(&total(groups)),
    });
    Ok(serde_json::to_string_pretty(&whole)? + "\n")
}

fn as_csv(by: By, groups: &[(String, Sum)]) -> String {
    let mut text = format!(
        "{},calls,input_tokens,cached_input_tokens,cache_write_input_tokens,output_tokens,reasoning_output_tokens,\
         total_tokens,dollars,unpriced_calls\n",
        by.name()
    );
    for (name, Sum { calls, tokens, price, unpriced }) in groups {
        _ = writeln!(
            text,
            "{},{calls},{},{},{},{},{},{},{},{unpriced}",
            quoted(name),
            tokens.input,
            tokens.cached_input,
            tokens.cache_write_input,
            tokens.output,
            tokens.reasoning_output,
            tokens.total(),
            price.dollars()
        );
    }
    text
}

/// A field that may have commas, quotes and line ends, and starts no formula of a spreadsheet.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@']);
    if !formula && !text.contains(['"', ',', '\n', '\r']) {
        return text.to_owned();
    }
    format!("\"{}{}\"", if formula { "'" } else { "" }, text.replace('"', "\"\""))
}

fn as_table(by: By, since: Date, until: Date, groups: &[(String, Sum)]) -> String {
    let days = if since == until { since.to_string() } else { format!("{since} to {until}") };
    if groups.is_empty() {
        return format!("No model calls: {days}, in UTC.\n");
    }
    let row = |name: &str, sum: &Sum| {
        let priced = sum.calls > sum.unpriced;
        [
            crate::show::lines(name).join(" "),
            sum.calls.to_string(),
            sum.tokens.input.to_string(),
            sum.tokens.cached_input.to_string(),
            sum.tokens.output.to_string(),
            if priced { sum.price.to_string() } else { "-".into() },
        ]
    };
    let head = [by.name(), "calls", "input", "cached", "output", "price"].map(str::to_owned);
    let sum = total(groups);
    let mut rows = vec![head];
    rows.extend(groups.iter().map(|(name, sum)| row(name, sum)));
    if groups.len() > 1 {
        rows.push(row("total", &sum));
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..6).map(width).collect();
    let mut text = format!("{days}, in UTC\n");
    for [name, numbers @ ..] in &rows {
        _ = write!(text, "{name:<0$}", widths[0]);
        for (number, width) in numbers.iter().zip(&widths[1..]) {
            _ = write!(text, "  {number:>width$}");
        }
        text.push('\n');
    }
    if sum.unpriced > 0 && sum.unpriced < sum.calls {
        _ = writeln!(text, "{} calls have no configured price.", sum.unpriced);
    }
    text
}

#[cfg(test)]
mod tests {
    use loomd_ledger::{Money, Tokens};

    use super::*;

    fn groups() -> Vec<(String, Sum)> {
        let sum = |calls, input, price, unpriced| Sum {
            calls,
            tokens: Tokens { input, cached_input: 1, output: 20, ..Tokens::default() },
            price: Money(price),
            unpriced,
        };
        vec![("p/m".into(), sum(2, 1000, 1_500_000_000, 0)), ("p/other".into(), sum(1, 7, 0, 1))]
    }

    #[test]
    fn the_table_has_a_total_and_says_what_has_no_price() {
        let day = Date::constant(2026, 11, 16);
        let expected = "2026-11-16, in UTC\n\
            model    calls  input  cached  output    price\n\
            p/m          2   1000       1      20  $1.5000\n\
            p/other      1      7       1      20        -\n\
            total        3   1007       2      40  $1.5000\n\
            1 calls have no configured price.\n";
        assert_eq!(as_table(By::Model, day, day, &groups()), expected);
        assert_eq!(as_table(By::Day, day, day, &[]), "No model calls: 2026-11-16, in UTC.\n");
    }

    #[test]
    fn csv_fields_are_quoted_and_start_no_formula() {
        assert_eq!(as_csv(By::Model, &groups()).lines().nth(1), Some("p/m,2,1000,1,0,20,0,1020,1.5,0"));
        assert_eq!([quoted("a,b"), quoted("a\"b"), quoted("=1")], ["\"a,b\"", "\"a\"\"b\"", "\"'=1\""]);
    }

    #[test]
    fn json_has_groups_and_their_total() {
        let day = Date::constant(2026, 11, 16);
        let whole: serde_json::Value = serde_json::from_str(&as_json(By::Model, day, day, &groups()).unwrap()).unwrap();
        assert_eq!(whole["groups"][0]["model"], "p/m");
        assert_eq!(
            (whole["total"]["totalTokens"].as_u64(), whole["total"]["dollars"].as_f64()),
            (Some(1047), Some(1.5))
        );
    }
}
