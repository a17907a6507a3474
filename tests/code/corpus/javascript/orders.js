'use strict';

const express = require('express');
const { body, validationResult } = require('express-validator');
const db = require('../db');

const router = express.Router();
const PRICE = /^\d+(\.\d{1,2})?$/;

/** Wraps a handler so that what it throws reaches the error handler. */
const safely = (handler) => (req, res, next) => {
  Promise.resolve(handler(req, res, next)).catch(next);
};

router.get('/', safely(async (req, res) => {
  const { page = 1, status } = req.query;
  const rows = await db.all(
    `SELECT * FROM orders WHERE status = ? LIMIT 20 OFFSET ${(Number(page) - 1) * 20}`,
    [status ?? 'open'],
  );
  res.json({ page: Number(page), items: rows });
}));

router.post(
  '/',
  body('email').isEmail(),
  body('total').matches(PRICE),
  safely(async (req, res) => {
    const errors = validationResult(req);
    if (!errors.isEmpty()) {
      return res.status(422).json({ errors: errors.array() });
    }
    const { email, total, ...rest } = req.body;
    const id = await db.insert('orders', { email, total, note: rest.note || null });
    return res.status(201).json({ id, link: `/orders/${id}` });
  }),
);

router.delete('/:id', safely(async (req, res) => {
  const gone = await db.remove('orders', req.params.id);
  if (gone === 0) {
    res.status(404).json({ error: 'no such order' });
  } else {
    res.status(204).end();
  }
}));

module.exports = router;
