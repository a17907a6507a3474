&#x27;use strict&#x27;;

const express = require(&#x27;express&#x27;);
const { body, validationResult } = require(&#x27;express-validator&#x27;);
const db = require(&#x27;../db&#x27;);

const router = express.Router();
const PRICE = /^\d+(\.\d{1,2})?$/;

/** Wraps a handler so that what it throws reaches the error handler. */
const safely = (handler) =&gt; (req, res, next) =&gt; {
  Promise.resolve(handler(req, res, next)).catch(next);
};

router.get(&#x27;/&#x27;, safely(async (req, res) =&gt; {
  const { page = 1, status } = req.query;
  const rows = await db.all(
    `SELECT * FROM orders WHERE status = ? LIMIT 20 OFFSET ${(Number(page) - 1) * 20}`,
    [status ?? &#x27;open&#x27;],
  );
  res.json({ page: Number(page), items: rows });
}));

router.post(
  &#x27;/&#x27;,
  body(&#x27;email&#x27;).isEmail(),
  body(&#x27;total&#x27;).matches(PRICE),
  safely(async (req, res) =&gt; {
    const errors = validationResult(req);
    if (!errors.isEmpty()) {
      return res.status(422).json({ errors: errors.array() });
    }
    const { email, total, ...rest } = req.body;
    const id = await db.insert(&#x27;orders&#x27;, { email, total, note: rest.note || null });
    return res.status(201).json({ id, link: `/orders/${id}` });
  }),
);

router.delete(&#x27;/:id&#x27;, safely(async (req, res) =&gt; {
  const gone = await db.remove(&#x27;orders&#x27;, req.params.id);
  if (gone === 0) {
    res.status(404).json({ error: &#x27;no such order&#x27; });
  } else {
    res.status(204).end();
  }
}));

module.exports = router;
