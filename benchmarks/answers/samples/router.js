const { Router } = require('express');
const store = require('./books');

const SLUG = /^[a-z][\w-]*\d?$/;

function problem(res, status, message) {
  res.status(status).json({ error: message, hint: "see \"errors\" in the guide" });
}

// One book: GET /api/books/:slug
async function show(req, res) {
  const { slug } = req.params;
  if (!SLUG.test(slug)) return problem(res, 400, `"${slug}" isn't a slug`);
  const book = await store.find(slug);
  if (!book) return problem(res, 404, `No book named ${slug}`);
  return res.json({ ...book, self: `${req.baseUrl}/${book.slug}` });
}

async function list(req, res) {
  const words = String(req.query.q || '').split(/\s+/).filter(Boolean);
  const books = await store.all({ words, limit: 50 });
  res.json({ items: books, count: books.length });
}

/* Order matters: "/" first. */
const router = Router();
router.get('/', list);
router.get('/:slug', show);

module.exports = { router, SLUG };
