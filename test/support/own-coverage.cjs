// Coverage of the processes that run tests, of which Mocha starts several: what those start in their turn runs the same
// files compiled, and the two cannot be added up.
if (process.env.MOCHA_WORKER_ID !== undefined) {
  // Mocha sends SIGTERM to a worker that has not ended after a second, though it writes what it has counted.
  process.on('SIGTERM', () => undefined)
}

exports.mochaHooks = {
  beforeAll() {
    delete process.env.NODE_V8_COVERAGE
  },
}
