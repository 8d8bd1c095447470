// Measures coverage of the Mocha processes only. Processes that the tests start run the same files compiled, and the two results
// cannot be added.
if (process.env.MOCHA_WORKER_ID !== undefined) {
  // Mocha sends SIGTERM to a worker that does not end within a second, also while it writes coverage.
  process.on('SIGTERM', () => undefined)
}

exports.mochaHooks = {
  beforeAll() {
    delete process.env.NODE_V8_COVERAGE
  },
}
