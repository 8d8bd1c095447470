// Mocha's `bdd`, with a suite around each file: `before`, `after` and their kin at a file's top level hold for that
// file alone. Mocha itself runs them for every test of the whole run.
const { relative } = require('node:path')
const { interfaces, Suite } = require('mocha')

const { log } = console

/** A worker hands on the stack of an error and nothing else. */
function tellCause() {
  const { err } = this.currentTest
  if (err?.cause instanceof Error) err.stack = `${err.stack}\n[cause]: ${err.cause.stack}`
}

module.exports = rootSuite => {
  rootSuite.on('pre-require', (context, path, mocha) => {
    const file = relative(process.cwd(), path)
    // A worker's output comes at once, among that of others; what Mocha reports of the file, when it is through.
    if (process.env.MOCHA_WORKER_ID !== undefined) console.log = (...words) => log(`[${file}]`, ...words)
    const suite = Suite.create(rootSuite, file)
    suite.afterEach(tellCause)
    interfaces.bdd(suite)
    suite.emit('pre-require', context, path, mocha)
  })
}
