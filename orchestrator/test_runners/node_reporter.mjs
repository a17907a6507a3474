// Reporter for `node --test` that writes JUnit XML. Node's own JUnit reporter names no files (before Node 24), leaves out
// a test that fails beside its passed subtests, and escapes names twice; here every test is one case of its file.
import { basename, isAbsolute, relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';

const TEXT_CAP = 20000;
const ROOTS = [`${pathToFileURL(process.cwd())}/`, `${process.cwd()}${sep}`];
const TEST_FILE = /(^test|^test-.+|[._-]test)\.[cm]?[jt]s$/;

const printable = (text) =>
  String(text).toWellFormed().replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD');

const escaped = (text) =>
  printable(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll('\t', '&#9;')
    .replaceAll('\n', '&#10;')
    .replaceAll('\r', '&#13;');

function inside(file) {
  const path = file ? relative(process.cwd(), resolve(file)) : '';
  return isAbsolute(path) || path.startsWith('..') ? '' : path.split(sep).join('/');
}

// Paths are told from the root: the same failure reads the same in every folder it is run in.
function told(error, printed = '') {
  const cause = error?.cause ?? error;
  const said = typeof cause === 'string' ? cause : inspect(cause, { depth: 4, maxStringLength: TEXT_CAP });
  const text = ROOTS.reduce((shown, root) => shown.replaceAll(root, ''), printed ? `${said}\n${printed}` : said);
  return text.length > TEXT_CAP ? `${text.slice(0, TEXT_CAP / 2)}\n[...]\n${text.slice(-TEXT_CAP / 2)}` : text;
}

function testcase(file, name, result, message) {
  const head = `<testcase classname="${escaped(file)}" name="${escaped(name)}" file="${escaped(file)}"`;
  return result ? `${head}><${result}>${escaped(message)}</${result}></testcase>\n` : `${head}/>\n`;
}

function resultOf(type, data) {
  if ((data.skip ?? false) !== false || (data.todo ?? false) !== false) return 'skipped';
  return type === 'test:fail' ? 'failure' : '';
}

// A suite (`describe`) is no test; it is told only when it failed for a reason of its own, such as a hook.
const isPlainSuite = (type, data) =>
  data.details?.type === 'suite' && (type === 'test:pass' || data.details.error?.failureType === 'subtestsFailed');

// Node counts a file as a test when it ran none, which an early `process.exit(0)` makes look like success.
function fileCase(type, data, file, printed) {
  if (type === 'test:fail') return testcase(file, file, 'error', told(data.details?.error, printed));
  if (!TEST_FILE.test(basename(file))) return '';
  return testcase(file, file, 'error', 'the file ended without reporting a test');
}

export default async function* junit(source) {
  const open = [];
  const printed = new Map();
  yield '<?xml version="1.0" encoding="utf-8"?>\n<testsuites>\n';
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      open.length = data.nesting;
      open[data.nesting] = data.name;
    } else if (type === 'test:stderr') {
      // Node 20 names the file in full here, newer ones as it was given.
      const file = inside(data.file);
      printed.set(file, ((printed.get(file) ?? '') + data.message).slice(-TEXT_CAP));
    } else if ((type === 'test:pass' || type === 'test:fail') && !isPlainSuite(type, data)) {
      const file = inside(data.file);
      const result = resultOf(type, data);
      if (data.nesting === 0 && data.file && resolve(data.name) === resolve(data.file)) {
        yield fileCase(type, data, file, printed.get(file));
      } else {
        const name = [...open.slice(0, data.nesting), data.name].join(' > ');
        yield testcase(file, name, result, result === 'failure' ? told(data.details?.error) : '');
      }
    }
  }
  yield '</testsuites>\n';
}
