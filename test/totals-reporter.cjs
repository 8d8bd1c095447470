// Mocha's spec reporter, with the version of Node.js first and one plain line of totals last, which any tool can read.
const { reporters, Runner } = require('mocha')

module.exports = class TotalsReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options)
    runner.once(Runner.constants.EVENT_RUN_BEGIN, () => console.log(`\n  node ${process.version}`))
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats
      process.on('exit', () =>
        console.log(`${passes} passed, ${failures} failed${pending ? `, ${pending} skipped` : ''}`),
      )
    })
  }
}
