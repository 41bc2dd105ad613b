use proptest::prelude::*;

use super::*;

/// Records the `repr` of each argument of `show`.
#[derive(Default)]
struct ShowHost(Vec<String>);

impl Host for ShowHost {
    const FUNCTIONS: &'static [&'static str] = &["show"];

    fn call(&mut self, _: &str, arguments: &[(Option<String>, HostValue)], _: Span) -> Result<(), String> {
        for (name, value) in arguments {
            let name = name.as_ref().map(|name| format!("{name}=")).unwrap_or_default();
            self.0.push(name + &plain(value));
        }
        Ok(())
    }
}

fn plain(value: &HostValue) -> String {
    match value {
        HostValue::Text(text) => text.clone(),
        HostValue::List(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        HostValue::Other(kind) => format!("<{kind}>"),
    }
}

fn shown(source: &str) -> Result<String, String> {
    let mut host = ShowHost::default();
    match run(source, &mut host) {
        Ok(()) => Ok(host.0.join(",")),
        Err(Failure { message, span }) => Err(format!("{}:{} {message}", span.start.line, span.start.column)),
    }
}

/// Checks the value of an expression, as `str` returns it.
fn check(expression: &str, expected: &str) {
    assert_eq!(shown(&format!("show(str(({expression})))")), Ok(expected.into()), "{expression}");
}

fn check_file(source: &str, expected: &str) {
    assert_eq!(shown(source), Ok(expected.into()), "{source}");
}

fn refuse(source: &str, expected: &str) {
    assert_eq!(shown(source), Err(expected.into()), "{source}");
}

#[test]
fn literals_evaluate_to_themselves() {
    check("'a'", "a");
    check(
        "['a', 1, True, None, (1,), (1, 2), {}, {'k': ['v']}]",
        r#"["a", 1, True, None, (1,), (1, 2), {}, {"k": ["v"]}]"#,
    );
    check("0x10, 0o7, 0b11, -5, - -5", "(16, 7, 3, -5, 5)");
    check("repr('a\"b\\n')", r#""a\"b\n""#);
    check("'''a\nb''', r'c\\d'", r#"("a\nb", "c\\d")"#);
    check("len", "len");
}

#[test]
fn operators_have_starlark_precedence() {
    check("1 + 2 * 3 - 4 // 2 % 3", "5");
    check("(1 + 2) * 3", "9");
    check("-7 // 2, -7 % 2, 7 // -2, 7 % -2", "(-4, 1, -4, -1)");
    check("1 | 2 & 3 ^ 4 << 1 >> 1", "7");
    check("'ab' * 2 + 'c'", "ababc");
    check("[1] * 2 + [3], 2 * (1,)", "([1, 1, 3], (1, 1))");
    check("{'a': 1, 'b': 2} | {'a': 3}", r#"{"a": 3, "b": 2}"#);
    check("not 1 == 2 and 3 > 2", "True");
    check("'' or 'x' and 'y'", "y");
    check("'a' if 1 < 2 else 'b'", "a");
    check("'a' in 'cab', 'x' not in ['x'], 1 in {1: 2}, 2 in (1,)", "(True, False, True, False)");
    check("1 == '1', [1] == [1], {'a': (1,)} == {'a': (1,)}, None == None", "(False, True, True, True)");
    check("[1, 2] < [1, 3], 'a' <= 'a', (2,) > (1, 5), 1 != 1", "(True, True, True, False)");
}

#[test]
fn indexing_and_slicing_return_elements() {
    check("['a', 'b'][-1] + 'xyz'[1] + {'k': 'v'}['k'] + ('t',)[0]", "byvt");
    check(
        "'abcd'[1:3], [1, 2, 3][::-1], (1, 2, 3)[:-1], 'abc'[5:], [1, 2, 3][::2]",
        r#"("bc", [3, 2, 1], (1, 2), "", [1, 3])"#,
    );
    check_file("l = [1, 2]\nl[0] = 'a'\nd = {}\nd['k'] = l\nd['k'][1] += 5\nshow(str(d))", r#"{"k": ["a", 7]}"#);
}

#[test]
fn comprehensions_build_lists_and_dicts() {
    check("[x + y for x in ['a', 'b'] for y in ['c', 'd'] if x + y != 'ad']", r#"["ac", "bc", "bd"]"#);
    check("{k: v for k, v in [('a', 1), ('b', 2)]}", r#"{"a": 1, "b": 2}"#);
    check("[a for a, (b, c) in [(1, (2, 3))]]", "[1]");
    check_file("x = 'out'\ny = [x for x in ['in']]\nshow(x)", "out");
}

#[test]
fn statements_are_executed_in_order() {
    check_file("x = 2\nif x == 1:\n  show('a')\nelif x == 2:\n  show('b')\nelse:\n  show('c')\n", "b");
    check_file("if True: show('a')\nif []: show('b')", "a");
    check_file("for x in ['a', 'b', 'c', 'd']:\n  if x == 'b': continue\n  if x == 'd': break\n  show(x)", "a,c");
    check_file("for k, v in {'a': 'b'}.items():\n  show(k, v)", "a,b");
    check_file("a, (b, c) = 'x', ['y', 'z']\n[d] = [a]\nshow(a, b, c, d)", "x,y,z,x");
    check_file("x = 1; x += 2; x *= 3\nl = ['a']\nm = l\nl += ['b']\nshow(str(x), m)", "9,[a b]");
    check_file("x: str = 'a'\nshow(x) # done\n'''doc'''", "a");
    check_file("show(named='x', *['y'], **{'z': 'w'})", "y,named=x,z=w");
    check_file("show(\n  'a',\n)\nx = 'a' + \\\n  'b'\nshow(x)", "a,ab");
}

#[test]
fn functions_defined_in_a_file_can_be_called() {
    check_file("def f(x, y='b'):\n  show(x, y)\nf('a')\nf(y='c', x='d')\nf(*['e'])", "a,b,d,c,e,b");
    check_file("def f(*args, **kw):\n  return str(args) + str(kw)\nshow(f(1, a=2))", r#"(1,){"a": 2}"#);
    check_file("def f(a, *, b='c'):\n  return a + b\nshow(f('x'), f('x', b='y'))", "xc,xy");
    check_file("def f(n):\n  return 'x' + f(n - 1) if n else ''\nshow(f(3))", "xxx");
    check_file("def f(x):\n  def g():\n    return x\n  return g\nshow(f('a')())", "a");
    check_file("def f(x: str) -> str:\n  if x:\n    return 'yes'\n  return 'no'\nshow(f(''), f('a'))", "no,yes");
    check_file("def f():\n  for x in ['a', 'b']:\n    return x\nshow(f())", "a");
    check_file("x = 'a'\ndef f():\n  x = 'b'\nf()\nshow(x)", "a");
    check_file("f = lambda x, y='z': x + y\nshow(f('a'))\ng = show\ng('b')\nh = ['c'].append\nh('d')", "az,b");
    check_file("def f(): pass\nshow(str(f()))", "None");
    check_file("def add(l, x):\n  l.append(x)\nl = []\nadd(l, 'a')\nshow(l)", "[a]");
}

#[test]
fn string_formatting_substitutes_values() {
    check("'%s-%d-%r%%' % ('a', 1, 'b')", r#"a-1-"b"%"#);
    check("'%s' % 'a'", "a");
    check("'{}-{}-{x}-{0}-{{}}'.format('a', 1, x=[2])", "a-1-[2]-a-{}");
    check_file("x = 1\nshow(f'{x}b{{{x}}}')", "1b{1}");
    refuse("x = f'{a + b}'", "1:5 Parse error: invalid format string: only names may stand in braces");
    refuse("show('%s %s' % 'a')", "1:6 Not enough parameters in format string");
    refuse("show('%s' % ('a', 'b'))", "1:6 Too many arguments for format string");
}

#[test]
fn builtin_functions_return_their_results() {
    check("len('aé'), len([1]), len({1: 2})", "(2, 1, 1)");
    check("range(3), range(1, 3), range(5, 0, -2)", "([0, 1, 2], [1, 2], [5, 3, 1])");
    check("enumerate(['a'], 1), zip([1, 2], ['a'])", r#"([(1, "a")], [(1, "a")])"#);
    check("sorted(['b', 'a', 'c'], reverse=True), reversed((1, 2))", r#"(["c", "b", "a"], [2, 1])"#);
    check("min('b', 'a'), max([1, 3, 2]), any([0, 1]), all([])", r#"("a", 3, True, True)"#);
    check(
        "type([]), bool(''), int(' 7 '), int(True), abs(-3), ord('a'), chr(98)",
        r#"("list", False, 7, 1, 3, 97, "b")"#,
    );
    check("list((1, 2)), tuple([1]), dict(a=1), dict([('b', 2)])", r#"([1, 2], (1,), {"a": 1}, {"b": 2})"#);
    refuse("fail('no', 1)", "1:1 fail: no 1");
}

#[test]
fn methods_of_strings_lists_and_dicts_work() {
    check(
        "'a b'.split(), 'a,b,'.split(','), 'a\\nb'.splitlines(), '-'.join(['a', 'b'])",
        r#"(["a", "b"], ["a", "b", ""], ["a", "b"], "a-b")"#,
    );
    check("'Ab'.lower() + 'Ab'.upper() + 'ab c'.title() + 'aB'.capitalize()", "abABAb CAb");
    check("' a '.strip() + 'xay'.strip('xy') + 'aab'.lstrip('a') + 'baa'.rstrip('a')", "aabb");
    check(
        "'ab'.startswith('a'), 'ab'.endswith(('x', 'b')), 'ab'.find('b'), 'ab'.find('x'), 'aba'.rfind('a')",
        "(True, True, 1, -1, 2)",
    );
    check(
        "'aXbX'.replace('X', '-'), 'aa'.count('a'), 'ab'.removeprefix('a'), 'ab'.removesuffix('b')",
        r#"("a-b-", 2, "b", "a")"#,
    );
    check(
        "'a=b=c'.partition('='), 'a=b=c'.rpartition('='), 'ab'.elems()",
        r#"(("a", "=", "b=c"), ("a=b", "=", "c"), ["a", "b"])"#,
    );
    check(
        "'a'.isalpha(), '1'.isdigit(), 'a1'.isalnum(), ' '.isspace(), 'a'.islower(), 'Aa'.isupper()",
        "(True, True, True, True, True, False)",
    );
    check_file(
        "l = ['b']\nl.extend(['c', 'd'])\nl.insert(0, 'a')\nl.remove('c')\nshow(l.pop(), l.pop(0), l)\nshow(str(l.index('b')))",
        "d,a,[b],0",
    );
    check_file(
        "d = {'a': 'x'}\nd.update({'b': 'y'}, c='z')\nd.setdefault('d', 'w')\nshow(d.get('q', 'n'), d.pop('a'), d.keys(), d.values())",
        "n,x,[b c d],[y z w]",
    );
}

#[test]
fn errors_carry_their_position() {
    refuse("x = 1 +", "1:8 Parse error: unexpected new line here");
    refuse("x = 1 < 2 < 3", "1:11 Parse error: unexpected symbol '<' here");
    refuse("while True:\n  pass", "1:1 Parse error: unexpected keyword 'while' here");
    refuse("load('x', 'y')", "1:1 Parse error: unexpected keyword 'load' here");
    refuse("x = 1.5", "1:5 Parse error: invalid number 1.5; there are no fractions here");
    refuse("return 1", "1:1 Parse error: `return` outside of a function");
    refuse("break", "1:1 Parse error: `break` outside of a loop");
    refuse("for x in [1]:\n  def f():\n    break", "3:5 Parse error: `break` outside of a loop");
    refuse("1 = 2", "1:1 Parse error: this cannot be assigned to");
    refuse("def f(a, a): pass", "1:10 Parse error: duplicated parameter name");
    refuse("def f(a=1, b): pass", "1:12 Parse error: positional parameter after one with a default");
    refuse("def f():\n", "2:1 Parse error: unexpected end of file here");
    refuse("x = {'a'}", "1:9 Parse error: unexpected symbol '}' here");
    refuse("show(zz)", "1:6 Variable `zz` not found");
    refuse("a, b = [1]", "1:1 Unpacked 1 values but expected 2");
    refuse("x = 'a' + 1", "1:5 Operation `+` not supported for types `string` and `int`");
    refuse("x = 1 < 'a'", "1:5 Operation `compare` not supported for types `int` and `string`");
    refuse("x = [1][5]", "1:5 Index `5` is out of bound");
    refuse("x = {'a': 1}['b']", "1:5 Key `\"b\"` was not found");
    refuse("x = {[]: 1}", "1:5 Value of type `list` is not hashable");
    refuse("x = 1 // 0", "1:5 division by zero");
    refuse("x = 9223372036854775807 + 1", "1:5 integer overflow");
    refuse("x = 'a'.nope", "1:5 Object of type `string` has no attribute `nope`");
    refuse("x = 1\nx()", "2:1 Operation `call()` not supported on type `int`");
    refuse("def f(a): pass\nf(1, 2)", "2:1 Found extra positional argument(s) for call to f");
    refuse("def f(a): pass\nf()", "2:1 Missing parameter `a` for call to `f`");
    refuse("for x in 'abc': pass", "1:10 Operation `(iter)` not supported on type `string`");
    refuse("len(1)", "1:1 Operation `(iter)` not supported on type `int`");
    refuse("[].append()", "1:1 `list.append` cannot be called with ()");
}

#[test]
fn a_file_that_exceeds_the_step_limit_is_refused() {
    let steps = |source: &str| {
        let error = shown(source).unwrap_err();
        assert!(error.ends_with("the file takes too many steps"), "{source}: {error}");
    };
    steps("for a in range(1000):\n for b in range(1000): pass");
    steps("x = range(1000000000)");
    steps("x = 'a' * 1000000000");
    steps("x = [1] * 1000000000");
    steps("x = 'a'\nfor i in range(100): x = x + x");
    steps("x = [1]\nfor i in range(100): x += x");
    steps("x = [1]\nfor i in range(100): x.extend(x)");
    steps("x = 'ab'\nfor i in range(100): x = x.replace('a', x)");
    steps("x = [[]]\nfor i in range(40): x = [x, x]\nshow(str(x))");
    steps("d = {}\nfor i in range(10000): d[i] = i");
    steps("x = [[[a for a in range(99)] for b in range(99)] for c in range(99)]");
    steps("def f(n): return [f(n - 1), f(n - 1)] if n else 1\nf(30)");
}

#[test]
fn deeply_nested_files_are_refused_without_overflow() {
    let deep = |source: &str| {
        let error = shown(source).unwrap_err();
        assert!(error.ends_with("too deeply nested") || error.contains("unexpected"), "{error}");
    };
    for bracket in ["[", "(", "{1:", "-", "not ", "lambda: ", "f(", "[a for a in ", "1 if 1 else "] {
        deep(&format!("x = {}", bracket.repeat(100_000)));
    }
    for operator in [" + 1", " and 1", "[0]", "()", " .a", " | 1", "[0:0]"] {
        deep(&format!("x = 1{}", operator.repeat(100_000)));
    }
    deep(&(0..1000).map(|depth| format!("{}if 1:\n", " ".repeat(depth))).collect::<String>());
    deep("def f(): return f()\nf()");
    deep("f = lambda x: [f(x) for y in [1]]\nf(1)");
    deep("x = 1\nfor i in range(1000): x = [x]\nshow(x)");
    deep("x = ()\nfor i in range(1000): x = (x,)\nshow(str(x))");
    deep("x = []\nx.append(x)\nshow(x)");
    deep("x, y = [], []\nx.append(x); y.append(y)\nx == y");
    deep("d = {}\nd['d'] = d\nshow(str(d))");
    // The deepest nesting that is accepted must not overflow the stack.
    let at_most = |depth: usize| "(".repeat(depth) + "1" + &")".repeat(depth);
    check_file(&format!("x = {}\ndef f(n):\n  return {}\nshow(str(x), str(f(1)))", at_most(60), at_most(59)), "1,1");
    check_file(
        &format!(
            "def f(n):\n  if n == 0: return 0\n  return {}\nshow(str(f(20)))",
            "f(n - 1)".to_owned() + &" + 0".repeat(9)
        ),
        "0",
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn no_starlark_text_panics(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "show", "for", "in", "if", "elif", "else", "def", "return", "lambda", "not", "and", "or", "pass", "break", "f", "x",
                "y", "(", ")", "[", "]", "{", "}", ",", ":", "=", "+=", "+", "-", "*", "//", "%", "==", "<", "|", ".", "**", ";",
                "append", "items", "range", "len", "1", "0", "'a'", "f'{x}'", " ", "\n", "\n ", "\n  ", "\n    ", "\t", "#", "\\", "é",
            ]),
            0..60,
        ),
        odd: String,
    ) {
        let _ = shown(&words.concat());
        let _ = shown(&words.join(" "));
        let _ = shown(&odd);
    }
}
