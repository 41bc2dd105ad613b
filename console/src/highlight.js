// Colours for code: a line becomes pieces with a kind. It knows words, texts, numbers and comments of families of
// languages, not their grammar, and looks at each line on its own.

/** Longer lines stay plain. */
const LONGEST = 1000;

const words = (text) => new Set(text.split(" "));
const FAMILIES = {
  c: {
    comment: "//[^\\n]*|/\\*.*?(?:\\*/|$)|^\\s*\\*(?:\\s.*|/)?$",
    keywords: words("abstract as async await break case catch class const continue crate debugger default defer delete do dyn else enum export extends extern final finally fn for from func function get go goto if impl implements import in instanceof interface internal let loop match mod move mut new null nil of override package private protected pub public range readonly ref return select self Self set sizeof static struct super switch this throw trait true false try type typedef typeof undefined union unsafe use using var virtual void volatile where while with yield bool char double float int long short signed unsigned i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64 str string number boolean any never unknown val fun when object data sealed lateinit"),
  },
  hash: {
    comment: "#[^\\n]*",
    keywords: words("and as assert async await break case class continue def del do done elif else end ensure esac except exec exit export false False fi finally for from function global if import in is lambda local module next nil None nonlocal not or pass raise readonly redo require rescue retry return self set shift source then true True try unless until unset when while with yield null"),
  },
  sql: {
    comment: "--[^\\n]*",
    keywords: words("select from where insert into update delete create table alter drop index view join left right inner outer on group by order having limit offset values set and or not null is in as distinct union all primary key foreign references default begin commit rollback with case when then else end exists unique check"),
    anyCase: true,
  },
  css: { comment: "/\\*.*?(?:\\*/|$)", keywords: words("important") },
  markup: { comment: "<!--.*?(?:-->|$)", keywords: new Set(), tags: true },
};
// A quote before a name is no text there.
FAMILIES.rust = { ...FAMILIES.c, chars: true };
const ENDINGS = {
  rust: "rs rust",
  c: "js mjs cjs ts tsx jsx c h cc cpp hpp cs go java kt kts swift scala dart proto zig php json jsonc javascript typescript golang cpp csharp kotlin",
  hash: "py sh bash zsh rb toml yaml yml ini conf cfg mk makefile dockerfile pl r ex exs nix python ruby shell perl",
  sql: "sql",
  css: "css scss less",
  markup: "html htm xml svg vue svelte",
};
const BY_ENDING = new Map(Object.entries(ENDINGS).flatMap(([family, all]) => all.split(" ").map((ending) => [ending, family])));

const patterns = new Map();
function patternOf(name) {
  if (!patterns.has(name)) {
    const { comment, tags, chars } = FAMILIES[name];
    const single = chars ? "'(?:[^'\\\\]|\\\\.[^']{0,8})'" : "(?<!\\w)'(?:[^'\\\\]|\\\\.)*'";
    const texts = "\"(?:[^\"\\\\]|\\\\.)*(?:\"|$)|" + single + "|`(?:[^`\\\\]|\\\\.)*(?:`|$)";
    const tag = tags ? "</?[A-Za-z][\\w:-]*|/?>" : "(?!)";
    patterns.set(name, new RegExp(`(?<comment>${comment})|(?<text>${texts})|(?<tag>${tag})|(?<number>\\b\\d[\\w.]*)|(?<word>[A-Za-z_$][\\w$-]*[\\w$]|[A-Za-z_$])(?<call>\\s*\\()?`, "g"));
  }
  return patterns.get(name);
}

/** The family of a path or of a language's name; null if there is none. */
export function familyOf(path) {
  const name = path?.split("/").at(-1)?.toLowerCase() ?? "";
  return BY_ENDING.get(name.split(".").at(-1)) ?? null;
}

/** @returns {{kind: string | null, text: string}[]} */
export function highlight(line, family) {
  if (!family || line.length > LONGEST) return [{ kind: null, text: line }];
  const { keywords, anyCase } = FAMILIES[family];
  const out = [];
  let at = 0;
  const put = (kind, text) => {
    const last = out.at(-1);
    if (last && last.kind === kind) last.text += text;
    else if (text) out.push({ kind, text });
  };
  for (const match of line.matchAll(patternOf(family))) {
    put(null, line.slice(at, match.index));
    at = match.index + match[0].length;
    const { comment, text, tag, number, word, call } = match.groups;
    if (comment !== undefined) put("comment", comment);
    else if (text !== undefined) put("string", text);
    else if (tag !== undefined) put("keyword", tag);
    else if (number !== undefined) put("number", number);
    else {
      const isKeyword = keywords.has(anyCase ? word.toLowerCase() : word);
      put(isKeyword ? "keyword" : call ? "call" : /^[A-Z]\w*[a-z]/.test(word) ? "type" : null, word);
      put(null, call ?? "");
    }
  }
  put(null, line.slice(at));
  return out;
}
