//! The references in the source of one module.

use std::collections::BTreeSet;

use super::tokens::{Kind, Token, tokens};

/// The names from the crate's root to a module.
pub type ModulePath = Vec<String>;

/// One source file.
#[derive(Debug)]
pub struct Module {
    pub path: ModulePath,
    /// Its file, for messages.
    pub file: String,
    pub references: Vec<Reference>,
    pub re_exports: Vec<ReExport>,
    /// Modules that are compiled for tests only.
    pub tests: Vec<ModulePath>,
}

/// A path in code, from the crate's root.
#[derive(Debug)]
pub struct Reference {
    pub target: Vec<String>,
    pub line: usize,
}

/// A `pub use`: `target` also has the name `name` here.
#[derive(Debug)]
pub struct ReExport {
    pub name: String,
    pub target: Vec<String>,
}

/// A path in a `use` or in code, with `{…}` expanded.
struct Path<'a> {
    segments: Vec<&'a str>,
    alias: Option<&'a str>,
    line: usize,
}

impl Module {
    pub fn parse(path: ModulePath, file: String, text: &str) -> Self {
        let tokens = tokens(text);
        let mut reader = Reader {
            tokens: &tokens,
            children: children(&tokens),
            inline: Vec::new(),
            depth: 0,
            module: Self { path, file, references: Vec::new(), re_exports: Vec::new(), tests: Vec::new() },
        };
        reader.read();
        reader.module
    }
}

/// The modules that are declared in a file. A path that begins with one of them is relative to the file's module.
fn children(tokens: &[Token<'_>]) -> BTreeSet<String> {
    let pairs = tokens.windows(2).filter_map(|pair| match (pair[0].kind, pair[1].kind) {
        (Kind::Word("mod"), Kind::Word(name)) => Some(name.to_owned()),
        _ => None,
    });
    pairs.collect()
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    children: BTreeSet<String>,
    /// The inline modules around the current place, each with the depth of braces it ends at.
    inline: Vec<(String, usize)>,
    depth: usize,
    module: Module,
}

impl<'a> Reader<'a> {
    fn read(&mut self) {
        let mut at = 0;
        while let Some(kind) = self.kind(at) {
            at = match kind {
                Kind::Mark('#') if self.is_test_attribute(at) => self.skip_test_item(at + 7),
                Kind::Mark('{') => {
                    self.depth += 1;
                    at + 1
                }
                Kind::Mark('}') => {
                    self.depth = self.depth.saturating_sub(1);
                    self.inline.pop_if(|(_, depth)| *depth == self.depth);
                    at + 1
                }
                Kind::Word("mod") if matches!(self.kind(at + 2), Some(Kind::Mark('{'))) => {
                    if let Some(Kind::Word(name)) = self.kind(at + 1) {
                        self.inline.push((name.into(), self.depth));
                    }
                    at + 2
                }
                Kind::Word("use") => self.read_use(at),
                Kind::Word(_) => self.read_path(at),
                _ => at + 1,
            };
        }
    }

    fn kind(&self, at: usize) -> Option<Kind<'a>> {
        self.tokens.get(at).map(|token| token.kind)
    }

    /// Whether `#[cfg(test)]`, which is seven tokens, begins here.
    fn is_test_attribute(&self, at: usize) -> bool {
        let expected = [
            Kind::Mark('#'),
            Kind::Mark('['),
            Kind::Word("cfg"),
            Kind::Mark('('),
            Kind::Word("test"),
            Kind::Mark(')'),
            Kind::Mark(']'),
        ];
        self.tokens[at..].iter().map(|token| token.kind).take(expected.len()).eq(expected)
    }

    /// Skips the item at `at`: up to its semicolon, or to the end of its first braces.
    fn skip_test_item(&mut self, mut at: usize) -> usize {
        if let (Some(Kind::Word("mod")), Some(Kind::Word(name)), Some(Kind::Mark(';'))) =
            (self.kind(at), self.kind(at + 1), self.kind(at + 2))
        {
            self.module.tests.push(self.module.path.iter().cloned().chain([name.to_owned()]).collect());
        }
        let mut depth = 0;
        while let Some(kind) = self.kind(at) {
            at += 1;
            match kind {
                Kind::Mark('{') => depth += 1,
                Kind::Mark('}') => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                Kind::Mark(';') if depth == 0 => break,
                _ => {}
            }
        }
        at
    }

    fn read_use(&mut self, at: usize) -> usize {
        let exported = at > 0
            && match self.kind(at - 1) {
                Some(Kind::Word("pub")) => true,
                // As in `pub(crate) use`.
                Some(Kind::Mark(')')) => self.opens_visibility(at - 1),
                _ => false,
            };
        let (paths, end) = self.read_tree(at + 1, &[]);
        for path in paths {
            let Some(target) = self.resolve(&path.segments) else { continue };
            let inside = target.len() > self.module.path.len() && target.starts_with(&self.module.path);
            if exported && let Some(last) = target.last() {
                let name = path.alias.map_or_else(|| last.clone(), str::to_owned);
                self.module.re_exports.push(ReExport { name, target: target.clone() });
            }
            if !(exported && inside) {
                self.module.references.push(Reference { target, line: path.line });
            }
        }
        end
    }

    /// Whether the parenthesis that ends at `close` follows `pub`.
    fn opens_visibility(&self, close: usize) -> bool {
        let open = self.tokens[..close].iter().rposition(|token| token.kind == Kind::Mark('('));
        open.is_some_and(|open| open > 0 && self.kind(open - 1) == Some(Kind::Word("pub")))
    }

    fn read_path(&mut self, at: usize) -> usize {
        let begins = at == 0 || !matches!(self.kind(at - 1), Some(Kind::Separator | Kind::Word("in")));
        if !begins || self.kind(at + 1) != Some(Kind::Separator) {
            return at + 1;
        }
        let (mut segments, mut next) = (Vec::new(), at);
        while let Some(Kind::Word(word)) = self.kind(next) {
            segments.push(word);
            if self.kind(next + 1) != Some(Kind::Separator) {
                next += 1;
                break;
            }
            next += 2;
        }
        if let Some(target) = self.resolve(&segments) {
            self.module.references.push(Reference { target, line: self.tokens[at].line });
        }
        next
    }

    /// The paths of a `use` from `at` on, each with the prefix before the braces, and the position after them.
    fn read_tree(&self, mut at: usize, before: &[&'a str]) -> (Vec<Path<'a>>, usize) {
        let mut segments = before.to_vec();
        let mut line = self.tokens.get(at).map_or(0, |token| token.line);
        let mut alias = None;
        while let Some(kind) = self.kind(at) {
            match kind {
                Kind::Word("as") => {
                    if let Some(Kind::Word(name)) = self.kind(at + 1) {
                        alias = Some(name);
                    }
                    at += 2;
                }
                Kind::Word("self") if !segments.is_empty() => at += 1,
                Kind::Word(word) => {
                    line = self.tokens[at].line;
                    segments.push(word);
                    at += 1;
                }
                Kind::Separator => at += 1,
                Kind::Mark('*') => {
                    segments.push("*");
                    at += 1;
                }
                Kind::Mark('{') => {
                    let mut paths = Vec::new();
                    at += 1;
                    while !matches!(self.kind(at), None | Some(Kind::Mark('}'))) {
                        let (inner, end) = self.read_tree(at, &segments);
                        paths.extend(inner);
                        at = end;
                        if self.kind(at) == Some(Kind::Mark(',')) {
                            at += 1;
                        }
                    }
                    return (paths, at + 1);
                }
                Kind::Mark(_) => break,
            }
        }
        (vec![Path { segments, alias, line }], at)
    }

    /// A path from the crate's root; `None` when it leads to another crate, or to a name in scope.
    fn resolve(&self, segments: &[&str]) -> Option<Vec<String>> {
        let mut base: ModulePath = self.module.path.clone();
        base.extend(self.inline.iter().map(|(name, _)| name.clone()));
        let mut rest = segments;
        match segments.first()? {
            &"crate" => {
                base.clear();
                rest = &rest[1..];
            }
            &"self" => rest = &rest[1..],
            &"super" => {
                while let Some((&"super", after)) = rest.split_first() {
                    base.pop();
                    rest = after;
                }
            }
            first if self.children.contains(*first) => {}
            _ => return None,
        }
        base.extend(rest.iter().map(|segment| (*segment).to_owned()));
        Some(base)
    }
}
