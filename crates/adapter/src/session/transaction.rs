//! [`Transaction`]: changes of slices that take effect together, or not at all. They are made on a copy, so that an
//! error, a panic and a dropped future all leave the session as it was.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{Epoch, Slices};

/// Changes in progress. Dropped without [`commit`](Self::commit), it changes nothing. There is one at a time.
pub(crate) struct Transaction<'a> {
    epoch: &'a Epoch,
    working: Arc<Mutex<Slices>>,
}

impl<'a> Transaction<'a> {
    pub(crate) fn begin(epoch: &'a Epoch) -> Self {
        let mut state = epoch.session.lock();
        state.in_transaction = state.epoch == epoch.number;
        let working = Arc::new(Mutex::new(state.slices.clone()));
        drop(state);
        Self { epoch, working }
    }

    /// The copy that is changed.
    pub(crate) fn working(&self) -> Arc<Mutex<Slices>> {
        Arc::clone(&self.working)
    }

    /// Makes the changes so far those of the session, unless the evaluation has ended.
    pub(crate) fn commit(self) {
        let slices = self.working.lock().clone();
        let mut state = self.epoch.session.lock();
        if state.epoch == self.epoch.number {
            state.slices = slices;
        }
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        let mut state = self.epoch.session.lock();
        if state.epoch == self.epoch.number {
            state.in_transaction = false;
            for event in std::mem::take(&mut state.deferred) {
                state.reduce(&event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::Session;
    use crate::session::EpochGuard;

    /// What a tool may do with slices of two types.
    #[derive(Clone, Debug)]
    enum Change {
        AppendNumber(u8),
        SeedNumber(u8),
        ClearNumbers,
        AppendText(String),
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            any::<u8>().prop_map(Change::AppendNumber),
            any::<u8>().prop_map(Change::SeedNumber),
            Just(Change::ClearNumbers),
            "[a-z]{0,3}".prop_map(Change::AppendText),
        ]
    }

    fn apply(change: &Change, slices: &mut Slices) {
        match change {
            Change::AppendNumber(number) => slices.append(*number),
            Change::SeedNumber(number) => slices.seed(*number),
            Change::ClearNumbers => slices.clear::<u8>(),
            Change::AppendText(text) => slices.append(text.clone()),
        }
    }

    fn apply_to_model(change: &Change, (numbers, texts): &mut (Vec<u8>, Vec<String>)) {
        match change {
            Change::AppendNumber(number) => numbers.push(*number),
            Change::SeedNumber(number) => *numbers = vec![*number],
            Change::ClearNumbers => numbers.clear(),
            Change::AppendText(text) => texts.push(text.clone()),
        }
    }

    fn content(slices: &Slices) -> (Vec<u8>, Vec<String>) {
        let numbers = slices.all::<u8>().iter().map(|number| **number).collect();
        (numbers, slices.all::<String>().iter().map(|text| (**text).clone()).collect())
    }

    proptest! {
        #[test]
        fn only_committed_transactions_change_the_session(
            transactions in vec((vec(change(), 0..6), any::<bool>()), 0..20)
        ) {
            let session = Session::new();
            let guard = EpochGuard::begin(&session);
            let epoch = &guard.0;
            let mut model = (Vec::new(), Vec::new());
            for (changes, succeeds) in &transactions {
                let transaction = Transaction::begin(epoch);
                let working = transaction.working();
                changes.iter().for_each(|change| apply(change, &mut working.lock()));
                prop_assert_eq!(content(&session.snapshot()), model.clone(), "nothing shows before the commit");
                if *succeeds {
                    transaction.commit();
                    changes.iter().for_each(|change| apply_to_model(change, &mut model));
                } else {
                    drop(transaction);
                }
                // A copy that a tool kept has no effect any more.
                working.lock().append(String::from("late"));
                prop_assert_eq!(content(&session.snapshot()), model.clone());
            }
        }
    }

    #[test]
    fn a_transaction_of_an_ended_evaluation_changes_nothing() {
        let session = Session::new();
        let first = EpochGuard::begin(&session);
        let transaction = Transaction::begin(&first.0);
        transaction.working().lock().append(1u8);
        let second = EpochGuard::begin(&session);
        transaction.commit();
        assert_eq!(session.all::<u8>().len(), 0);
        let transaction = Transaction::begin(&second.0);
        transaction.working().lock().append(2u8);
        transaction.commit();
        assert_eq!(session.latest::<u8>().as_deref(), Some(&2));
    }
}
