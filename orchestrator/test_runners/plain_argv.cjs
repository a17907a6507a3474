// Loaded before jest and mocha: once they have read their options, tests that read `process.argv` find the project's own.
const { argv, env } = process;
if (require('worker_threads').isMainThread && env.OWN_WORDS) {
  const own = JSON.parse(env.OWN_WORDS);
  delete env.OWN_WORDS; // neither is for what the tests start
  env.NODE_OPTIONS = env.NODE_OPTIONS.replace(/ *--require="[^"]*plain_argv\.cjs"/, '');
  if (!env.NODE_OPTIONS) delete env.NODE_OPTIONS;
  setImmediate(() => argv.splice(2, argv.length, ...own));
}
