//! Pages of a thread's history, bounded by rows and by bytes.
//!
//! A cursor names a row (the anchor), and whether the page begins with it or after it. So a cursor stays valid while
//! the thread grows.

use loomd_protocol::{
    SortDirection, ThreadItem, ThreadItemEntry, ThreadItemsListResponse, ThreadTurnsListResponse, Turn, TurnItemsView,
};
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// The rows of a page: without a `limit`, and at most.
const DEFAULT_ROWS: u32 = 25;
const MAX_ROWS: u32 = 100;

/// The most bytes of a page's rows. A page has at least one row, however long.
const MAX_BYTES: usize = 512 * 1024;

/// The pagination params of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    pub cursor: Option<String>,
    pub limit: Option<u32>,
    pub direction: SortDirection,
}

impl PageRequest {
    fn cursor(&self) -> Result<Option<Cursor>, Refusal> {
        let Some(text) = &self.cursor else { return Ok(None) };
        serde_json::from_str(text).map(Some).map_err(|_| Refusal::invalid(format!("invalid cursor: {text}")))
    }

    fn limit(&self) -> usize {
        page_rows(self.limit)
    }
}

/// The rows of a page with this limit.
pub(crate) fn page_rows(limit: Option<u32>) -> usize {
    limit.unwrap_or(DEFAULT_ROWS).clamp(1, MAX_ROWS) as usize
}

/// The anchor of a page: the row that it begins with (`include_anchor`) or after.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cursor {
    turn_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item_id: Option<String>,
    include_anchor: bool,
}

/// A cursor of pages of turns: the page begins with this turn, whatever its direction.
pub(crate) fn cursor_of_turn(turn_id: &str) -> String {
    let cursor = Cursor { turn_id: turn_id.to_owned(), item_id: None, include_anchor: true };
    serde_json::to_string(&cursor).unwrap_or_default()
}

/// Collects the rows of a page. Turns are added in the direction of the request, from the turn of the cursor on.
pub(crate) struct PageBuilder<'a, T> {
    request: &'a PageRequest,
    cursor: Option<Cursor>,
    rows: Vec<T>,
    /// The rows of the page so far, without those before the cursor, and their bytes.
    counted: usize,
    bytes: usize,
    /// The turn of the cursor was added and does not contain the anchor: the cursor is invalid.
    lost: bool,
}

impl<'a, T: Serialize> PageBuilder<'a, T> {
    pub fn new(request: &'a PageRequest) -> Result<Self, Refusal> {
        Ok(Self { request, cursor: request.cursor()?, rows: Vec::new(), counted: 0, bytes: 0, lost: false })
    }

    /// The id of the turn to begin with; `None` for the first turn.
    pub fn anchor(&self) -> Option<&str> {
        self.cursor.as_ref().map(|cursor| cursor.turn_id.as_str())
    }

    pub fn direction(&self) -> SortDirection {
        self.request.direction
    }

    /// Whether no further turn has to be added: there is one row more than the page takes, which shows that there is a
    /// next page, or the cursor is invalid.
    pub fn is_full(&self) -> bool {
        self.lost || self.counted > self.request.limit() || (self.counted > 1 && self.bytes > MAX_BYTES)
    }

    fn push(&mut self, row: T, key: &impl Fn(&T) -> (String, Option<String>)) {
        let behind = match &self.cursor {
            None => true,
            Some(_) if self.counted > 0 => true,
            // Nothing is counted yet: the row is the anchor, directly follows it, or precedes it in its turn.
            Some(cursor) => {
                let anchor = |row: &T| key(row) == (cursor.turn_id.clone(), cursor.item_id.clone());
                (anchor(&row) && cursor.include_anchor) || self.rows.last().is_some_and(anchor)
            }
        };
        if behind {
            self.counted += 1;
            self.bytes += size(&row);
        }
        self.rows.push(row);
    }
}

impl PageBuilder<'_, Turn> {
    pub fn add(&mut self, turn: Turn, view: TurnItemsView) {
        self.push(shown(turn, view), &turn_key);
    }

    pub fn finish(self) -> Result<ThreadTurnsListResponse, Refusal> {
        let page = page(self.rows, self.request, self.cursor, turn_key)?;
        Ok(ThreadTurnsListResponse { data: page.rows, next_cursor: page.next, backwards_cursor: page.back })
    }
}

impl PageBuilder<'_, ThreadItemEntry> {
    pub fn add(&mut self, turn: Turn) {
        let Turn { id, mut items, .. } = turn;
        if self.request.direction == SortDirection::Desc {
            items.reverse();
        }
        for item in items {
            let entry = ThreadItemEntry { turn_id: id.clone(), item, started_at_ms: None, completed_at_ms: None };
            self.push(entry, &item_key);
        }
        if let Some(cursor) = &self.cursor
            && self.counted == 0
        {
            let anchor = (cursor.turn_id.clone(), cursor.item_id.clone());
            self.lost = !self.rows.iter().any(|row| item_key(row) == anchor);
        }
    }

    pub fn finish(self) -> Result<ThreadItemsListResponse, Refusal> {
        let page = page(self.rows, self.request, self.cursor, item_key)?;
        Ok(ThreadItemsListResponse { data: page.rows, next_cursor: page.next, backwards_cursor: page.back })
    }
}

fn turn_key(turn: &Turn) -> (String, Option<String>) {
    (turn.id.clone(), None)
}

fn item_key(entry: &ThreadItemEntry) -> (String, Option<String>) {
    (entry.turn_id.clone(), Some(entry.item.id().to_owned()))
}

/// Returns the cursors that page backwards from the newest turn and the newest item.
pub(crate) fn newest_cursors(turns: &[Turn]) -> (Option<String>, Option<String>) {
    let cursor = |turn: &Turn, item_id: Option<String>| {
        serde_json::to_string(&Cursor { turn_id: turn.id.clone(), item_id, include_anchor: true }).ok()
    };
    let newest = turns.last().and_then(|turn| cursor(turn, None));
    let with_items = turns.iter().rev().find_map(|turn| Some((turn, turn.items.last()?)));
    (newest, with_items.and_then(|(turn, item)| cursor(turn, Some(item.id().to_owned()))))
}

/// A turn with the items of a view. A summary has the user's first message and the last message of the agent.
pub(crate) fn shown(mut turn: Turn, view: TurnItemsView) -> Turn {
    match view {
        TurnItemsView::Full => {}
        TurnItemsView::NotLoaded => turn.items.clear(),
        TurnItemsView::Summary => {
            let answer = turn.items.iter().rposition(|item| matches!(item, ThreadItem::AgentMessage { .. }));
            let question = turn.items.iter().position(|item| matches!(item, ThreadItem::UserMessage { .. }));
            let mut position = 0;
            turn.items.retain(|_| {
                let keep = Some(position) == question || Some(position) == answer;
                position += 1;
                keep
            });
        }
    }
    turn.items_view = Some(view);
    turn
}

struct Page<T> {
    rows: Vec<T>,
    next: Option<String>,
    back: Option<String>,
}

/// Makes the page of the collected rows, which are in its order. Fails when the anchor is not among them.
fn page<T: Serialize>(
    rows: Vec<T>,
    request: &PageRequest,
    cursor: Option<Cursor>,
    key: impl Fn(&T) -> (String, Option<String>),
) -> Result<Page<T>, Refusal> {
    let begin = match cursor {
        None => 0,
        Some(cursor) => {
            let wanted = (cursor.turn_id, cursor.item_id);
            let at = rows.iter().position(|row| key(row) == wanted).ok_or_else(|| {
                Refusal::invalid(format!("invalid cursor: {}", request.cursor.as_deref().unwrap_or_default()))
            })?;
            if cursor.include_anchor { at } else { at + 1 }
        }
    };
    let limit = request.limit();
    let left = rows.len().saturating_sub(begin);
    let mut bytes = 0;
    let taken: Vec<T> = rows
        .into_iter()
        .skip(begin)
        .take(limit)
        .enumerate()
        .take_while(|(position, row)| {
            bytes += size(row);
            *position == 0 || bytes <= MAX_BYTES
        })
        .map(|(_, row)| row)
        .collect();
    let cursor = |row: &T, include_anchor| {
        let (turn_id, item_id) = key(row);
        serde_json::to_string(&Cursor { turn_id, item_id, include_anchor }).ok()
    };
    Ok(Page {
        next: taken.last().filter(|_| taken.len() < left).and_then(|row| cursor(row, false)),
        back: taken.first().and_then(|row| cursor(row, true)),
        rows: taken,
    })
}

fn size(row: &impl Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    _ = serde_json::to_writer(&mut count, row);
    count.0
}

#[cfg(test)]
mod tests {
    use loomd_protocol::TurnStatus;

    use super::*;

    fn turns(
        mut all: Vec<Turn>,
        request: &PageRequest,
        view: TurnItemsView,
    ) -> Result<ThreadTurnsListResponse, Refusal> {
        let mut page = PageBuilder::<Turn>::new(request)?;
        if request.direction == SortDirection::Desc {
            all.reverse();
        }
        for turn in all {
            page.add(turn, view);
        }
        page.finish()
    }

    fn items(all: Vec<Turn>, request: &PageRequest, turn_id: Option<&str>) -> Result<ThreadItemsListResponse, Refusal> {
        let mut page = PageBuilder::<ThreadItemEntry>::new(request)?;
        for turn in all.into_iter().filter(|turn| turn_id.is_none_or(|id| turn.id == id)) {
            page.add(turn);
        }
        page.finish()
    }

    fn thread(turns: usize, text: &str) -> Vec<Turn> {
        let turn = |number: usize| Turn {
            id: format!("t{number}"),
            items: vec![
                ThreadItem::UserMessage { id: format!("u{number}"), content: Vec::new(), client_id: None },
                ThreadItem::Plan { id: format!("p{number}"), text: text.into() },
                ThreadItem::AgentMessage {
                    id: format!("a{number}"),
                    text: text.into(),
                    phase: None,
                    memory_citation: None,
                },
            ],
            status: TurnStatus::Completed,
            ..Turn::default()
        };
        (0..turns).map(turn).collect()
    }

    fn ask(cursor: Option<String>, limit: u32, direction: SortDirection) -> PageRequest {
        PageRequest { cursor, limit: Some(limit), direction }
    }

    #[test]
    fn pages_follow_each_other_in_both_directions() {
        for direction in [SortDirection::Asc, SortDirection::Desc] {
            let (mut seen, mut cursor) = (Vec::new(), None);
            loop {
                let page = turns(thread(7, ""), &ask(cursor, 3, direction), TurnItemsView::Full).unwrap();
                seen.extend(page.data.into_iter().map(|turn| turn.id));
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            let mut expected: Vec<String> = (0..7).map(|number| format!("t{number}")).collect();
            if direction == SortDirection::Desc {
                expected.reverse();
            }
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn cursors_work_in_both_directions_and_stay_valid_while_the_thread_grows() {
        let newest = turns(thread(7, ""), &ask(None, 2, SortDirection::Desc), TurnItemsView::Full).unwrap();
        assert_eq!(newest.backwards_cursor.as_deref(), Some(r#"{"turnId":"t6","includeAnchor":true}"#));
        assert_eq!(newest.next_cursor.as_deref(), Some(r#"{"turnId":"t5","includeAnchor":false}"#));
        let later = ask(newest.backwards_cursor, 10, SortDirection::Asc);
        let grown = turns(thread(9, ""), &later, TurnItemsView::Full).unwrap();
        let ids: Vec<&str> = grown.data.iter().map(|turn| turn.id.as_str()).collect();
        assert_eq!(ids, ["t6", "t7", "t8"]);
    }

    #[test]
    fn a_view_has_no_items_or_a_summary_or_all_items() {
        for (view, expected) in [
            (TurnItemsView::NotLoaded, vec![]),
            (TurnItemsView::Summary, vec!["u0", "a0"]),
            (TurnItemsView::Full, vec!["u0", "p0", "a0"]),
        ] {
            let page = turns(thread(1, ""), &PageRequest::default(), view).unwrap();
            let ids: Vec<&str> = page.data[0].items.iter().map(ThreadItem::id).collect();
            assert_eq!((ids, page.data[0].items_view), (expected, Some(view)));
        }
    }

    #[test]
    fn a_page_is_bounded_by_bytes_but_never_empty() {
        let large = "x".repeat(MAX_BYTES / 3);
        let page = turns(thread(9, &large), &ask(None, 9, SortDirection::Asc), TurnItemsView::Summary).unwrap();
        assert_eq!((page.data.len(), page.next_cursor.is_some()), (2, true));
        let huge = "x".repeat(MAX_BYTES * 2);
        let page = turns(thread(2, &huge), &ask(None, 9, SortDirection::Asc), TurnItemsView::Full).unwrap();
        assert_eq!((page.data.len(), page.next_cursor.is_some()), (1, true));
    }

    #[test]
    fn items_are_paged_over_turns_or_within_one() {
        let page = items(thread(3, ""), &ask(None, 4, SortDirection::Asc), None).unwrap();
        let ids: Vec<&str> = page.data.iter().map(|entry| entry.item.id()).collect();
        assert_eq!(ids, ["u0", "p0", "a0", "u1"]);
        let page = items(thread(3, ""), &ask(page.next_cursor, 2, SortDirection::Asc), None).unwrap();
        let ids: Vec<&str> = page.data.iter().map(|entry| entry.item.id()).collect();
        assert_eq!(ids, ["p1", "a1"]);
        let page = items(thread(3, ""), &PageRequest::default(), Some("t1")).unwrap();
        assert_eq!((page.data.len(), page.next_cursor), (3, None));
    }

    #[test]
    fn a_page_is_full_once_the_cursors_turn_lacks_its_item() {
        let request = ask(Some(r#"{"turnId":"t0","itemId":"no","includeAnchor":true}"#.into()), 1, SortDirection::Asc);
        let mut page = PageBuilder::<ThreadItemEntry>::new(&request).unwrap();
        page.add(thread(1, "").remove(0));
        assert!(page.is_full());
        page.finish().unwrap_err();
    }

    #[test]
    fn an_unknown_cursor_is_invalid() {
        for bad in ["zz", "{}", r#"{"turnId":"nope","includeAnchor":true}"#] {
            let request = ask(Some(bad.into()), 1, SortDirection::Asc);
            let error = turns(thread(1, ""), &request, TurnItemsView::Full).unwrap_err();
            assert_eq!(error, Refusal::invalid(format!("invalid cursor: {bad}")));
        }
    }
}
