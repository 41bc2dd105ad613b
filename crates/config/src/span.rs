//! The span of the value that an error of decoding is about.
//!
//! Configuration is decoded from values without spans, so that there is one decoder of its type. Where an error is found
//! is worked out afterwards, from the keys that the error names.

use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// The span of the value that `mistake`, a displayed error, is about. `table` has the error and `spans` the spans of its
/// values; `is_mistaken` says whether another table has the same error.
pub(crate) fn of_mistake(
    mistake: &str,
    spans: &Spanned<DeTable<'_>>,
    table: &Table,
    is_mistaken: &dyn Fn(Table) -> bool,
) -> Range<usize> {
    let mut places = Vec::new();
    if let Some(path) = keys_of(mistake) {
        find(spans.get_ref(), path, &mut Vec::new(), &mut places);
    }
    let culprit = places.iter().find(|place| is_mistaken(narrowed(table, &place.steps)));
    culprit.or(places.last()).map_or(spans.span(), |place| place.span.clone())
}

/// The dotted keys at the end of a displayed error. They are not quoted, and name no index of an array.
fn keys_of(mistake: &str) -> Option<&str> {
    mistake.trim_end_matches('\n').rsplit_once("\nin `")?.1.strip_suffix('`')
}

/// A value that an error can be about.
struct Place {
    steps: Vec<Step>,
    span: Range<usize>,
}

#[derive(Clone)]
enum Step {
    Key(String),
    Index(usize),
}

/// Adds the values under `path`, the elements of an array before the array. There are several when arrays are on the way,
/// or when a key contains a dot.
fn find(table: &DeTable<'_>, path: &str, steps: &mut Vec<Step>, places: &mut Vec<Place>) {
    for (key, value) in table {
        let Some(rest) = path.strip_prefix(key.get_ref().as_ref()) else { continue };
        steps.push(Step::Key(key.get_ref().to_string()));
        if rest.is_empty() {
            add(value, steps, places);
        } else if let Some(rest) = rest.strip_prefix('.') {
            match value.get_ref() {
                DeValue::Table(inner) => find(inner, rest, steps, places),
                DeValue::Array(items) => {
                    for (index, item) in items.iter().enumerate() {
                        let DeValue::Table(inner) = item.get_ref() else { continue };
                        steps.push(Step::Index(index));
                        find(inner, rest, steps, places);
                        steps.pop();
                    }
                }
                _ => {}
            }
        }
        steps.pop();
    }
}

fn add(value: &Spanned<DeValue<'_>>, steps: &mut Vec<Step>, places: &mut Vec<Place>) {
    if let DeValue::Array(items) = value.get_ref() {
        for (index, item) in items.iter().enumerate() {
            steps.push(Step::Index(index));
            add(item, steps, places);
            steps.pop();
        }
    }
    places.push(Place { steps: steps.clone(), span: value.span() });
}

/// The table with only those elements of arrays that `steps` lead through.
fn narrowed(table: &Table, steps: &[Step]) -> Table {
    let mut root = Value::Table(table.clone());
    let mut node = &mut root;
    for step in steps {
        let next = match (step, node) {
            (Step::Key(key), Value::Table(table)) => table.get_mut(key),
            (Step::Index(index), Value::Array(items)) if *index < items.len() => {
                items.swap(0, *index);
                items.truncate(1);
                items.first_mut()
            }
            _ => None,
        };
        let Some(next) = next else { break };
        node = next;
    }
    match root {
        Value::Table(narrowed) => narrowed,
        _ => Table::new(),
    }
}
