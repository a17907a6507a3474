// Reads one JSON string per line, answers [repaired text or null, seconds] per line. Run in the folder with node_modules.
const { createRequire } = require('node:module');
const readline = require('node:readline');

const { jsonrepair } = createRequire(process.cwd() + '/')('jsonrepair');

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const text = JSON.parse(line);
  const begin = process.hrtime.bigint();
  let repaired = null;
  try {
    repaired = jsonrepair(text);
  } catch {
    // refused: null says so
  }
  const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
  process.stdout.write(JSON.stringify([repaired, seconds]) + '\n');
});
