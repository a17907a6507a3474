// Reporter for mocha that writes what jest and vitest write with --json: its own JSON reporter joins titles with spaces.
const { writeFileSync } = require('node:fs');

module.exports = class {
  constructor(runner, options) {
    const files = new Map();
    const add = (test, status, error) => {
      const [, ...ancestorTitles] = test.parent ? path(test.parent) : [''];
      const held = files.get(test.file) ?? [];
      files.set(test.file, held);
      held.push({ ancestorTitles, title: test.title, status, failureMessages: error ? [error.stack ?? String(error)] : [] });
    };
    runner.on('pass', (test) => add(test, 'passed'));
    runner.on('pending', (test) => add(test, 'pending'));
    runner.on('fail', (test, error) => add(test, 'failed', error));
    runner.on('end', () => {
      const testResults = [...files].map(([name, assertionResults]) => ({ name, assertionResults }));
      writeFileSync(options.reporterOption.output, JSON.stringify({ testResults }));
    });
    const mocha = require(require.resolve('mocha', { paths: [process.cwd()] }));
    new (mocha.reporters ?? mocha.default.reporters).spec(runner, options); // for people
  }
};

const path = (suite) => (suite.parent ? [...path(suite.parent), suite.title] : ['']);
