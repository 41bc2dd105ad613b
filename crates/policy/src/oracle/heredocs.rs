//! The pieces of generated here-documents, common and wild.

pub(super) const DELIMITERS: &[&str] = &["EOF", "'EOF'", "\"EOF\""];
pub(super) const WILD_DELIMITERS: &[&str] = &[
    "\\EOF",
    "\\\\EOF",
    "\"'EOF'\"",
    "\"EOF'",
    "E\"OF\"",
    "'E'OF",
    "E\\OF",
    "''EOF",
    "EOF''",
    "E-F",
    "$EOF",
    "EOF;zz",
    "EOF#",
    "EOF\\",
    "EOF\\\n",
    "{EOF,x}",
    "EO*",
    "'EOF';zz",
    "'EOF'>f",
    "EOF\\ ",
    "$'EOF'",
    "\"E\\OF\"",
    "'EOF\n'",
    "EOF\u{a0}",
];
pub(super) const AFTER: &[&str] =
    &["", " a", " >f", " 2>&1", " <f", " b >g c", " >&2", " >>f", "\t", " > f a", " 1>f 2>g", " f"];
pub(super) const WILD_AFTER: &[&str] = &[
    " 2>&1;zz", ";zz", " | zz", " && zz", " {a,b}", " *", " 'a'", " # c", " \\\n a", " &", " 2>&1a", " >&f", " >f;zz",
    " &>f", " 2>&-", " >a>b", " a>b", " >f&zz", " >\\f", " 2 >f", " >", " <<A", "\r", " <&0", " >&2;zz",
];
pub(super) const BODIES: &[&str] = &[
    "",
    "x\n",
    "\tx\n",
    "EOF \n",
    " EOF\n",
    "'EOF'\n",
    "zz a\n",
    "'\n",
    "EOF'\n",
    "\"EOF\"\n",
    "EOFx\n",
    "#\n",
    "\tEOFx\n",
];
pub(super) const WILD_BODIES: &[&str] = &[
    "$x\n",
    "$(zz)\n",
    "E\\\nOF\nzz b\n",
    "\tEOF\nzz\n",
    "\\EOF\n",
    "`zz`\n",
    "EOF\r\n",
    "a\\\n",
    "\\\\\n",
    "EOF\nzz\n",
    "\\\nEOF\nzz\n",
    "x\\\nEOF\n",
    "EOF\\\n\nzz\n",
    "$(zz\nEOF\n",
    "${x:-\nEOF\nzz\n",
];
pub(super) const ENDINGS: &[&str] = &["EOF", "EOF\n", "EOF\n\n", "EOF\n \t\n"];
pub(super) const WILD_ENDINGS: &[&str] = &[
    "\tEOF\n",
    "EOF\nzz c\n",
    "'EOF'\n",
    "EOF\\\n",
    "\\EOF\n",
    "EOF\n\u{a0}",
    "",
    "EOF \n",
    "EOF\n#\n",
    "EOF;zz",
    "EOF\n\\\n",
    "EOF\n;",
];
