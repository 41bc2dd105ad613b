//! Requests for pages of turns and items.

use loomd_protocol::{
    SortDirection, ThreadItemEntry, ThreadItemsListResponse, ThreadTurnsListResponse, Turn, TurnItemsView,
};
use loomd_store::{Error, ThreadId};

use crate::lanes::LaneGuard;
use crate::pages::{OpenTurn, TurnSource};
use crate::paging::{PageBuilder, PageRequest};
use crate::refusal::Refusal;
use crate::threads::{Threads, unreadable};
use crate::view::Persistence;

impl Threads {
    /// Returns a page of a thread's turns.
    pub async fn turns_page(
        &self,
        id: ThreadId,
        request: &PageRequest,
        view: TurnItemsView,
    ) -> Result<ThreadTurnsListResponse, Refusal> {
        let lane = self.lanes.enter(id).await;
        self.turns_page_within(&lane, id, request, view).await
    }

    pub(crate) async fn turns_page_within(
        &self,
        lane: &LaneGuard,
        id: ThreadId,
        request: &PageRequest,
        view: TurnItemsView,
    ) -> Result<ThreadTurnsListResponse, Refusal> {
        let mut page = PageBuilder::<Turn>::new(request)?;
        let (anchor, direction) = (page.anchor().map(str::to_owned), page.direction());
        self.each_turn_within(lane, id, anchor.as_deref(), direction, |_, turn| {
            page.add(turn, view);
            !page.is_full()
        })
        .await?;
        page.finish()
    }

    /// Returns a page of the items of a thread, or of one of its turns.
    pub async fn items_page(
        &self,
        id: ThreadId,
        request: &PageRequest,
        turn_id: Option<&str>,
    ) -> Result<ThreadItemsListResponse, Refusal> {
        let lane = self.lanes.enter(id).await;
        self.items_page_within(&lane, id, request, turn_id).await
    }

    pub(crate) async fn items_page_within(
        &self,
        lane: &LaneGuard,
        id: ThreadId,
        request: &PageRequest,
        turn_id: Option<&str>,
    ) -> Result<ThreadItemsListResponse, Refusal> {
        let mut page = PageBuilder::<ThreadItemEntry>::new(request)?;
        let (anchor, direction) = (page.anchor().map(str::to_owned), page.direction());
        self.each_turn_within(lane, id, turn_id.or(anchor.as_deref()), direction, |_, turn| {
            let wanted = turn_id.is_none_or(|id| turn.id == id);
            if wanted {
                page.add(turn);
            }
            // Turns with the same id are adjacent.
            wanted && !page.is_full()
        })
        .await?;
        page.finish()
    }

    /// Calls `take` with a thread's turns and their numbers, in order, from the one with the id `from` or else the first,
    /// until it returns false. Not called when no turn has the id.
    pub(crate) async fn each_turn(
        &self,
        id: ThreadId,
        from: Option<&str>,
        direction: SortDirection,
        take: impl FnMut(usize, Turn) -> bool,
    ) -> Result<(), Refusal> {
        let lane = self.lanes.enter(id).await;
        self.each_turn_within(&lane, id, from, direction, take).await
    }

    async fn each_turn_within(
        &self,
        _: &LaneGuard,
        id: ThreadId,
        from: Option<&str>,
        direction: SortDirection,
        take: impl FnMut(usize, Turn) -> bool,
    ) -> Result<(), Refusal> {
        let running = match self.get(id) {
            Some(loaded) => {
                match loaded.view.persistence() {
                    Persistence::Stored => {}
                    Persistence::Pending => return Ok(()),
                    Persistence::Ephemeral => {
                        return Err(Refusal::invalid("ephemeral threads do not support thread/turns/list"));
                    }
                }
                // Taken before the rollout is read: an item that completes meanwhile is found in the rollout.
                loaded
                    .view
                    .running_turn()
                    .map(|turn_id| OpenTurn { items: loaded.events.open_items(&turn_id), turn_id })
            }
            None => match self.store.find(id, None).await {
                Err(Error::NotFound { .. }) => return Err(Refusal::invalid(format!("thread not loaded: {id}"))),
                found => found.map(|_| None).map_err(|error| unreadable(id, error))?,
            },
        };
        let read = async {
            let reader = self.store.open(id).await?;
            let source = TurnSource { store: &*self.store, reader: &*reader, running };
            self.outlines.each_turn(source, from, direction, take).await
        };
        read.await.map_err(|error| unreadable(id, error))
    }
}
