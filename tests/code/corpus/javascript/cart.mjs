import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

const FILE = path.join(import.meta.dirname, 'cart.json');

export class Cart {
  #items = new Map();
  static limit = 50;

  constructor(items = []) {
    for (const [sku, count] of items) {
      this.#items.set(sku, count);
    }
  }

  get size() {
    return [...this.#items.values()].reduce((sum, count) => sum + count, 0);
  }

  add(sku, count = 1) {
    if (this.size + count > Cart.limit) {
      throw new RangeError(`at most ${Cart.limit} pieces`);
    }
    this.#items.set(sku, (this.#items.get(sku) ?? 0) + count);
    return this;
  }

  async *lines(prices) {
    for await (const [sku, count] of this.#items) {
      yield { sku, count, cents: count * (prices?.[sku] ?? 0) };
    }
  }

  toJSON() {
    return Object.fromEntries(this.#items);
  }
}

export async function load() {
  try {
    const text = await readFile(FILE, 'utf8');
    return new Cart(Object.entries(JSON.parse(text)));
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return new Cart();
  }
}

export const save = (cart) => writeFile(FILE, JSON.stringify(cart, null, 2));
export default Cart;
