//! What every implementation of [`Store`] must do, as tests. `store_suite!` runs all of them on one implementation.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "only tests use it, and a test that fails may stop")]

mod approvals;
mod archive;
mod facts;
mod leases;
mod lists;
mod records;

use std::sync::Arc;

use jiff::Timestamp;

pub use approvals::*;
pub use archive::*;
pub use facts::*;
pub use leases::*;
pub use lists::*;
pub use records::*;

use crate::rollout::{AgentMessage, Event, Line, Record, SessionMeta, Source, UserMessage};
use crate::{Batch, Durability, ListQuery, Position, Reader, Store, ThreadId, Window};

/// An implementation under test.
pub trait Harness {
    /// The stored threads as another process sees them. Every call gives an independent view of the same threads.
    fn open(&self) -> Arc<dyn Store>;

    /// Takes a thread's lease away from its holder, as a process does that takes over from one that seems dead.
    fn revoke_lease(&self, id: ThreadId);
}

/// Makes a test of every case of the suite. The expression makes a new, empty [`Harness`]; after `optional`, it makes
/// `None` where the implementation cannot be tested, and the cases pass.
#[macro_export]
macro_rules! store_suite {
    ($harness:expr) => {
        $crate::store_suite! { optional Some($harness) }
    };
    (optional $harness:expr) => {
        $crate::store_suite! { @cases $harness;
            a_created_thread_is_not_stored_before_its_first_append,
            a_batch_is_read_back_as_it_was_appended,
            records_are_read_forward_in_windows_of_any_size,
            records_are_read_backward_in_windows_of_any_size,
            a_window_holds_at_least_one_record_however_small_the_limit,
            a_window_is_no_larger_than_its_limit,
            reading_goes_on_from_the_position_of_any_record,
            positions_grow_and_survive_being_kept_as_numbers,
            reading_past_the_end_is_empty_and_not_an_error,
            an_append_starts_where_the_last_one_ended,
            the_end_moves_with_every_append,
            a_synced_append_is_read_like_any_other,
            a_batch_of_many_megabytes_is_appended_whole,
            a_line_that_is_no_record_is_kept_as_it_stands,
            what_is_appended_by_one_process_is_read_by_another,
            concurrent_appends_of_many_threads_do_not_mix,
            concurrent_writers_of_one_thread_take_turns,
            a_reader_outlives_the_store_handle_that_opened_it,
            a_thread_has_one_writer_at_a_time,
            a_lease_is_free_when_its_writer_is_dropped,
            a_lease_holds_between_processes,
            writers_of_one_reader_share_an_epoch,
            an_epoch_grows_when_another_reader_takes_over,
            an_epoch_grows_when_the_first_reader_comes_back,
            an_epoch_grows_across_a_restart,
            a_writer_whose_lease_was_taken_over_cannot_append,
            a_stale_writer_that_is_dropped_does_not_free_the_lease_of_the_next,
            a_valid_lease_can_be_renewed,
            a_thread_that_was_never_stored_is_not_found,
            an_append_does_not_bring_a_deleted_thread_back,
            an_archived_thread_is_listed_as_archived_only,
            an_archived_thread_can_still_be_read,
            an_unarchived_thread_is_active_and_counts_as_changed,
            archiving_twice_is_not_found,
            a_thread_with_a_writer_can_be_neither_archived_nor_deleted,
            a_deleted_thread_is_gone_for_every_process,
            a_thread_without_a_user_message_is_found_and_not_listed,
            lists_are_newest_first_and_end_without_a_cursor,
            pages_show_every_thread_once_in_either_order,
            a_list_shows_only_the_providers_that_are_asked_for,
            a_thread_without_a_provider_counts_for_the_default_one,
            a_list_shows_only_the_sources_that_are_asked_for,
            a_list_shows_only_the_working_directories_that_are_asked_for,
            a_list_shows_only_previews_with_the_search_term,
            filters_hold_together_and_with_a_cursor,
            the_backwards_cursor_begins_with_the_first_thread_of_its_page,
            excluded_threads_and_other_clients_are_left_out_before_pages_are_cut,
            relatives_are_listed_whatever_started_them,
            messages_are_searched_in_any_case_and_found_in_pages,
            a_name_shows_in_lookups_and_lists,
            a_name_can_be_given_before_a_thread_is_stored,
            the_last_name_counts_and_a_blank_one_is_none,
            git_changes_show_in_lookups_and_lists,
            git_changes_add_up_and_can_clear_a_fact,
            derived_data_is_kept_replaced_and_ends_with_its_thread,
            an_unknown_thread_has_no_facts,
            the_first_decision_about_an_approval_counts_in_every_process,
            approvals_are_listed_in_pages_newest_first,
            approvals_end_with_their_thread,
            stale_approvals_of_a_thread_are_cancelled,
        }
    };
    (@cases $harness:expr; $($case:ident,)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                if let Some(harness) = $harness {
                    $crate::suite::$case(&harness).await;
                }
            }
        )*
    };
}

/// When the threads of the suite were created, unless a case says otherwise.
const CREATED: i64 = 1_741_064_767;

fn meta(id: ThreadId, created: i64) -> SessionMeta {
    SessionMeta {
        id,
        forked_from_id: None,
        attached_to: None,
        session_id: None,
        thread_source: None,
        timestamp: Timestamp::from_second(created).unwrap().to_string(),
        cwd: "/".into(),
        originator: "suite".into(),
        cli_version: "0.0.1".into(),
        source: Source::Cli,
        agent_nickname: None,
        agent_role: None,
        agent_path: None,
        model_provider: Some("mock".into()),
        base_instructions: None,
        dynamic_tools: None,
        memory_mode: None,
        preview: None,
        git: None,
        budget: None,
        placement: Vec::new(),
    }
}

fn user(text: &str) -> Record {
    Record::EventMsg(Event::UserMessage(UserMessage { message: text.into(), ..Default::default() }))
}

fn agent(text: &str) -> Record {
    Record::EventMsg(Event::AgentMessage(AgentMessage { message: text.into(), ..Default::default() }))
}

fn batch(records: &[Record]) -> Batch {
    records.iter().collect()
}

/// The decoded records of a window.
fn decoded(window: &Window) -> Vec<Record> {
    window.lines().filter_map(|line| Line::parse(line.bytes)?.decode()).collect()
}

/// Every record of a thread.
async fn all(reader: &dyn Reader) -> Vec<Record> {
    decoded(&reader.records_after(Position::START, usize::MAX / 2).await.unwrap())
}

async fn append(reader: &dyn Reader, records: &[Record]) {
    reader.writer().await.unwrap().append(batch(records), Durability::Flushed).await.unwrap();
}

/// Stores a thread with these facts and one message.
async fn store_thread(store: &dyn Store, meta: SessionMeta, text: &str) -> (ThreadId, Arc<dyn Reader>) {
    let id = meta.id;
    let created = meta.created_at().unwrap();
    let reader = store.create(id, created);
    append(&*reader, &[Record::SessionMeta(Box::new(meta)), user(text)]).await;
    (id, reader)
}

/// Stores a thread with one message.
async fn thread(store: &dyn Store, text: &str) -> (ThreadId, Arc<dyn Reader>) {
    let id = ThreadId::new();
    store_thread(store, meta(id, CREATED), text).await
}

/// The previews of one page.
async fn previews(store: &dyn Store, query: ListQuery) -> Vec<String> {
    let page = store.list(query).await.unwrap();
    page.threads.into_iter().filter_map(|thread| thread.preview).collect()
}

fn query() -> ListQuery {
    ListQuery::new("mock")
}
