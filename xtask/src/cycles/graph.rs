//! The graph of dependencies between modules, and its cycles.

use std::collections::{BTreeMap, BTreeSet};

use super::references::{Module, ModulePath};

/// The longest chain of re-exports; a longer one is a cycle.
const MAX_RE_EXPORTS: usize = 16;

/// The name of a folder's own file among the modules in the folder.
const OWN_FILE: &str = "self";

/// Every dependency, with the place in the source that makes it.
pub struct Graph {
    edges: BTreeMap<ModulePath, BTreeMap<ModulePath, String>>,
}

impl Graph {
    pub fn new(modules: &[Module]) -> Self {
        let known = Known::new(modules);
        let mut edges: BTreeMap<ModulePath, BTreeMap<ModulePath, String>> = BTreeMap::new();
        for module in modules {
            for reference in &module.references {
                let target = known.module_of(&reference.target);
                if let Some((from, to)) = neighbours(&module.path, &target) {
                    let place = || format!("{}:{}", module.file, reference.line);
                    edges.entry(from).or_default().entry(to).or_insert_with(place);
                }
            }
        }
        Self { edges }
    }

    /// Each group of modules that depend on each other, with the dependencies inside of it, as a text.
    pub fn cycles(&self) -> Vec<String> {
        let reached: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
            self.edges.keys().map(|module| (module, self.reachable(module))).collect();
        let reaches = |one: &ModulePath, other: &ModulePath| reached.get(one).is_some_and(|set| set.contains(other));
        let mut seen = BTreeSet::new();
        let mut cycles = Vec::new();
        for module in self.edges.keys() {
            if !reaches(module, module) || seen.contains(module) {
                continue;
            }
            let group: Vec<&ModulePath> =
                self.edges.keys().filter(|other| reaches(module, other) && reaches(other, module)).collect();
            seen.extend(group.iter().copied());
            cycles.push(self.describe(&group));
        }
        cycles
    }

    fn reachable(&self, from: &ModulePath) -> BTreeSet<&ModulePath> {
        let mut reached = BTreeSet::new();
        let mut pending: Vec<&ModulePath> = self.edges.get(from).into_iter().flat_map(BTreeMap::keys).collect();
        while let Some(next) = pending.pop() {
            if reached.insert(next) {
                pending.extend(self.edges.get(next).into_iter().flat_map(BTreeMap::keys));
            }
        }
        reached
    }

    fn describe(&self, group: &[&ModulePath]) -> String {
        let names: Vec<String> = group.iter().map(|module| name(module)).collect();
        let mut text = names.join(", ");
        for from in group {
            for (to, place) in self.edges.get(*from).into_iter().flatten().filter(|(to, _)| group.contains(to)) {
                text.push_str(&format!("\n  {} -> {}  {place}", name(from), name(to)));
            }
        }
        text
    }
}

/// A dependency as one between modules of the same folder, of which one may be the folder's own file. `None` for a
/// dependency inside of one module.
fn neighbours(from: &ModulePath, to: &ModulePath) -> Option<(ModulePath, ModulePath)> {
    let common = from.iter().zip(to).take_while(|(one, other)| one == other).count();
    let cut = |path: &ModulePath| match path.get(..=common) {
        Some(inside) => inside.to_vec(),
        None => path.iter().cloned().chain([OWN_FILE.into()]).collect(),
    };
    (from != to).then(|| (cut(from), cut(to)))
}

fn name(module: &ModulePath) -> String {
    module.join("::")
}

struct Known<'a> {
    paths: BTreeSet<&'a [String]>,
    re_exports: BTreeMap<(&'a [String], &'a str), &'a [String]>,
}

impl<'a> Known<'a> {
    fn new(modules: &'a [Module]) -> Self {
        let re_exports = modules.iter().flat_map(|module| {
            module
                .re_exports
                .iter()
                .map(|known| ((module.path.as_slice(), known.name.as_str()), known.target.as_slice()))
        });
        Self { paths: modules.iter().map(|module| module.path.as_slice()).collect(), re_exports: re_exports.collect() }
    }

    /// The module that defines the target of a path.
    fn module_of(&self, target: &[String]) -> ModulePath {
        let mut target = target.to_vec();
        for _ in 0..MAX_RE_EXPORTS {
            let depth = (0..=target.len()).rev().find(|depth| self.paths.contains(&target[..*depth])).unwrap_or(0);
            let (module, rest) = target.split_at(depth);
            let next = rest.first().and_then(|name| self.re_exports.get(&(module, name.as_str())));
            match next {
                Some(next) => target = next.iter().chain(&rest[1..]).cloned().collect(),
                None => return module.to_vec(),
            }
        }
        target
    }
}
