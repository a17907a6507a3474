const { test } = require('node:test');
const assert = require('node:assert/strict');
const { SLUG, router } = require('../src/router');

test('a slug may end in a digit', () => {
  assert.match('book-2', SLUG);
  assert.doesNotMatch('2-books', SLUG);
});

test("an unknown book is 404, and says \"No book\"", async () => {
  const reply = await fetch(`${process.env.BASE}/api/books/none`);
  assert.equal(reply.status, 404);
  const { error } = await reply.json();
  assert.ok(/^No book\b/.test(error), `said: ${error}`);
});

test('books can be listed', async (t) => {
  const reply = await fetch(process.env.BASE + '/api/books');
  t.diagnostic(`took ${reply.headers.get("x-time") ?? '?'} ms`);
  assert.deepEqual(Object.keys(await reply.json()), ['items', 'count']);
});
