// Mocha's `bdd`, with a suite around each file: `before`, `after` and their kin at a file's top level hold for that
// file alone. Mocha itself runs them for every test of the whole run.
const { relative } = require('node:path')
const { interfaces, Suite } = require('mocha')

module.exports = rootSuite => {
  rootSuite.on('pre-require', (context, file, mocha) => {
    const suite = Suite.create(rootSuite, relative(process.cwd(), file))
    interfaces.bdd(suite)
    suite.emit('pre-require', context, file, mocha)
  })
}
