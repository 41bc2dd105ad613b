//! [`Slices`]: histories of values, by type. Copies share the values, so a snapshot is cheap.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Histories of values, one per type.
#[derive(Clone, Default)]
pub struct Slices(HashMap<TypeId, Slice>);

#[derive(Clone)]
struct Slice {
    name: &'static str,
    values: Arc<Vec<Arc<dyn Any + Send + Sync>>>,
}

impl Slices {
    /// The value that was added last.
    pub fn latest<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let value = self.0.get(&TypeId::of::<T>())?.values.last()?;
        Arc::clone(value).downcast().ok()
    }

    /// All values, the oldest first.
    pub fn all<T: Send + Sync + 'static>(&self) -> Vec<Arc<T>> {
        let Some(slice) = self.0.get(&TypeId::of::<T>()) else { return Vec::new() };
        slice.values.iter().filter_map(|value| Arc::clone(value).downcast().ok()).collect()
    }

    pub fn append<T: Send + Sync + 'static>(&mut self, value: T) {
        let empty = || Slice { name: type_name::<T>(), values: Arc::default() };
        let slice = self.0.entry(TypeId::of::<T>()).or_insert_with(empty);
        Arc::make_mut(&mut slice.values).push(Arc::new(value));
    }

    /// Replaces all values of the type by this one.
    pub fn seed<T: Send + Sync + 'static>(&mut self, value: T) {
        self.clear::<T>();
        self.append(value);
    }

    pub fn clear<T: Send + Sync + 'static>(&mut self) {
        self.0.remove(&TypeId::of::<T>());
    }
}

impl fmt::Debug for Slices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lengths: Vec<_> = self.0.values().map(|slice| (slice.name, slice.values.len())).collect();
        lengths.sort_unstable();
        f.debug_map().entries(lengths).finish()
    }
}
