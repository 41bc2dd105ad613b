//! What the answer to a resumed thread has beside the thread: pages of its history, and what users added to it.

use loomd_organiser::Facts;
use loomd_protocol::{SortDirection, ThreadTurnsListResponse, TurnItemsView};
use loomd_store::ThreadId;

use crate::lanes::LaneGuard;
use crate::paging::PageRequest;
use crate::thread::Opened;
use crate::threads::Threads;

/// The first page of turns that a client asks for as it resumes a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct InitialPage {
    pub request: PageRequest,
    pub view: TurnItemsView,
}

/// A thread that was resumed.
#[derive(Clone, Debug, PartialEq)]
pub struct Resumed {
    pub opened: Opened,
    pub pages: ResumedPages,
}

/// Pages of a resumed thread, and the cursors that page backwards from its newest turn and item. Cursors stay valid
/// while the thread grows. Empty for clients of the older release that ask for all turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResumedPages {
    pub initial: Option<ThreadTurnsListResponse>,
    pub turns_backwards_cursor: Option<String>,
    pub items_backwards_cursor: Option<String>,
}

impl Threads {
    pub(crate) async fn resumed_pages(
        &self,
        id: ThreadId,
        lane: &LaneGuard,
        initial: Option<InitialPage>,
    ) -> ResumedPages {
        let initial = match initial {
            Some(page) => self.turns_page_within(lane, id, &page.request, page.view).await.ok(),
            None => None,
        };
        let newest = PageRequest { cursor: None, limit: Some(1), direction: SortDirection::Desc };
        let turns = self.turns_page_within(lane, id, &newest, TurnItemsView::NotLoaded).await.ok();
        let items = self.items_page_within(lane, id, &newest, None).await.ok();
        ResumedPages {
            initial,
            turns_backwards_cursor: turns.and_then(|page| page.backwards_cursor),
            items_backwards_cursor: items.and_then(|page| page.backwards_cursor),
        }
    }

    /// What users added to a thread. When that cannot be read, the thread is shown without it.
    pub(crate) async fn facts(&self, id: ThreadId) -> Facts {
        let facts = self.services.organiser.run(move |organiser| organiser.facts(&[id])).await;
        let facts =
            facts.inspect_err(|error| tracing::warn!(%error, "a thread is shown without its section and project"));
        facts.ok().and_then(|mut facts| facts.remove(&id)).unwrap_or_default()
    }
}
