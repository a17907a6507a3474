// Loaded before jest and mocha: once they have read their options, tests that read `process.argv` find none of them.
const { argv, env } = process;
env.NODE_OPTIONS = env.NODE_OPTIONS.replace(/ *--require="[^"]*plain_argv\.cjs"/, ''); // not for what the tests start
setImmediate(() => argv.splice(2));
