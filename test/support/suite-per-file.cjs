// Mocha's `bdd` interface with a suite per file, so that top-level hooks such as `before` apply to that file only. Without it
// Mocha runs them for all tests of a run.
const { relative } = require('node:path')
const { interfaces, Suite } = require('mocha')

const { log } = console

/** Appends the cause to the stack: Mocha workers transfer only the stack of an error. */
function tellCause() {
  const { err } = this.currentTest
  if (err?.cause instanceof Error) err.stack = `${err.stack}\n[cause]: ${err.cause.stack}`
}

module.exports = rootSuite => {
  rootSuite.on('pre-require', (context, path, mocha) => {
    const file = relative(process.cwd(), path)
    // Worker output appears at once, mixed with that of other workers, so each line names its file.
    if (process.env.MOCHA_WORKER_ID !== undefined) console.log = (...words) => log(`[${file}]`, ...words)
    const suite = Suite.create(rootSuite, file)
    suite.afterEach(tellCause)
    interfaces.bdd(suite)
    suite.emit('pre-require', context, path, mocha)
  })
}
