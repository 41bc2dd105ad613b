//! The parser of patches. Accepts everything that the grammar for models produces, and common deviations: white space
//! around markers, a heredoc around the whole, a first chunk without `@@`.

/// A parsed patch; the hunks are in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    pub hunks: Vec<Hunk>,
}

/// The change of one file. Paths are as written, relative to the working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hunk {
    Add { path: String, content: String },
    Delete { path: String },
    Update { path: String, move_to: Option<String>, chunks: Vec<Chunk> },
}

/// Lines that replace others in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// A line after which the position is searched.
    pub context: Option<String>,
    pub lines: Vec<Line>,
    /// Whether the position is the end of the file.
    pub end_of_file: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Context(String),
    Added(String),
    Removed(String),
}

/// Why a text is not a patch. Lines count from 1, the begin marker being the first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("invalid patch: The first line of the patch must be '*** Begin Patch'")]
    FirstLine,
    #[error("invalid patch: The last line of the patch must be '*** End Patch'")]
    LastLine,
    #[error("invalid hunk at line {line}, {error}")]
    Hunk { line: usize, error: HunkError },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HunkError {
    #[error(
        "'{0}' is not a valid hunk header. Valid hunk headers: '*** Add File: {{path}}', '*** Delete File: {{path}}', \
         '*** Update File: {{path}}'"
    )]
    Header(String),
    #[error("Update file hunk for path '{0}' is empty")]
    NoChunks(String),
    #[error("Update hunk does not contain any lines")]
    NoLines,
    #[error(
        "Unexpected line found in update hunk: '{0}'. Every line should start with ' ' (context line), '+' (added line), \
         or '-' (removed line)"
    )]
    Line(String),
    #[error("Expected update hunk to start with a @@ context marker, got: '{0}'")]
    NoMarker(String),
}

pub(crate) const BEGIN: &str = "*** Begin Patch";
pub(crate) const END: &str = "*** End Patch";
pub(crate) const ADD: &str = "*** Add File: ";
pub(crate) const DELETE: &str = "*** Delete File: ";
pub(crate) const UPDATE: &str = "*** Update File: ";
pub(crate) const MOVE: &str = "*** Move to: ";
pub(crate) const END_OF_FILE: &str = "*** End of File";
pub(crate) const CHUNK: &str = "@@";

/// Parses a patch. One without hunks is valid here.
pub fn parse(text: &str) -> Result<Patch, ParseError> {
    let lines: Vec<_> = text.trim().lines().collect();
    let lines = inside_heredoc(&lines).unwrap_or(&lines);
    let body = match lines {
        [first, ..] if first.trim() != BEGIN => return Err(ParseError::FirstLine),
        [_, body @ .., last] if last.trim() == END => body,
        _ => return Err(ParseError::LastLine),
    };
    let mut parser = Parser { lines: body, next: 0 };
    let mut hunks = Vec::new();
    while parser.peek().is_some() {
        hunks.push(parser.hunk()?);
    }
    Ok(Patch { hunks })
}

/// The lines inside a heredoc without a command, in which some models wrap a patch.
fn inside_heredoc<'a>(lines: &'a [&'a str]) -> Option<&'a [&'a str]> {
    match lines {
        ["<<EOF" | "<<'EOF'" | "<<\"EOF\"", inner @ .., last] if inner.len() >= 2 && last.ends_with("EOF") => {
            Some(inner)
        }
        _ => None,
    }
}

struct Parser<'a> {
    lines: &'a [&'a str],
    next: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.next).copied()
    }

    /// Consumes the next line if `wanted` returns a value for it.
    fn take<T>(&mut self, wanted: impl FnOnce(&'a str) -> Option<T>) -> Option<T> {
        let found = wanted(self.peek()?)?;
        self.next += 1;
        Some(found)
    }

    /// An error at the next line, or this many lines before it.
    fn error<T>(&self, back: usize, error: HunkError) -> Result<T, ParseError> {
        // `next` counts from the line after the begin marker, which is line 1.
        Err(ParseError::Hunk { line: self.next + 2 - back, error })
    }

    fn hunk(&mut self) -> Result<Hunk, ParseError> {
        let header = self.peek().unwrap_or_default().trim();
        let Some(start) = start(header) else {
            return self.error(0, HunkError::Header(header.into()));
        };
        self.next += 1;
        Ok(match start {
            HunkHeader::Add(path) => {
                let mut content = String::new();
                while let Some(line) = self.take(|line| line.strip_prefix('+')) {
                    content.push_str(line);
                    content.push('\n');
                }
                Hunk::Add { path: path.into(), content }
            }
            HunkHeader::Delete(path) => Hunk::Delete { path: path.into() },
            HunkHeader::Update(path) => {
                let move_to = self.take(|line| line.strip_prefix(MOVE)).map(|path| path.trim_end().to_owned());
                let header = self.next - 1 - usize::from(move_to.is_some());
                let chunks = self.chunks()?;
                if chunks.is_empty() {
                    return self.error(self.next - header, HunkError::NoChunks(path.into()));
                }
                Hunk::Update { path: path.into(), move_to, chunks }
            }
        })
    }

    fn chunks(&mut self) -> Result<Vec<Chunk>, ParseError> {
        let mut chunks = Vec::new();
        while let Some(line) = self.peek() {
            if line.trim().is_empty() {
                self.next += 1;
            } else if line.starts_with("***") {
                break;
            } else {
                chunks.push(self.chunk(chunks.is_empty())?);
            }
        }
        Ok(chunks)
    }

    fn chunk(&mut self, first: bool) -> Result<Chunk, ParseError> {
        let marker = self.take(|line| match line.strip_prefix(CHUNK)? {
            "" => Some(None),
            rest => rest.strip_prefix(' ').map(|context| (!context.trim().is_empty()).then(|| context.to_owned())),
        });
        if marker.is_none() && !first {
            return self.error(0, HunkError::NoMarker(self.peek().unwrap_or_default().into()));
        }
        let mut chunk = Chunk { context: marker.flatten(), ..Chunk::default() };
        while let Some(line) = self.take(chunk_line) {
            chunk.lines.push(line);
        }
        if chunk.lines.is_empty() {
            return match self.peek() {
                None | Some(END_OF_FILE) => self.error(0, HunkError::NoLines),
                Some(line) => self.error(0, HunkError::Line(line.into())),
            };
        }
        chunk.end_of_file = self.take(|line| (line == END_OF_FILE).then_some(())).is_some();
        Ok(chunk)
    }
}

enum HunkHeader<'a> {
    Add(&'a str),
    Delete(&'a str),
    Update(&'a str),
}

fn start(header: &str) -> Option<HunkHeader<'_>> {
    let add = || header.strip_prefix(ADD).map(HunkHeader::Add);
    let delete = || header.strip_prefix(DELETE).map(HunkHeader::Delete);
    let update = || header.strip_prefix(UPDATE).map(HunkHeader::Update);
    add().or_else(delete).or_else(update)
}

fn chunk_line(line: &str) -> Option<Line> {
    let Some(first) = line.chars().next() else {
        // Editors and models strip the space of an empty context line.
        return Some(Line::Context(String::new()));
    };
    let text = || line[1..].to_owned();
    match first {
        ' ' => Some(Line::Context(text())),
        '+' => Some(Line::Added(text())),
        '-' => Some(Line::Removed(text())),
        _ => None,
    }
}
