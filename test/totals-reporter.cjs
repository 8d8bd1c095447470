// Mocha's spec reporter, followed by one plain line of totals that any tool can read, and by the tests that passed only when
// they were tried again (`--retries`), each with why: they are to be mended.
const { reporters, Runner } = require('mocha')

module.exports = class TotalsReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options)
    runner.once(Runner.constants.EVENT_RUN_BEGIN, () => console.log(`\n  node ${process.version}`))
    const again = []
    runner.on(Runner.constants.EVENT_TEST_RETRY, (test, error) => again.push(`${test.fullTitle()}: ${error?.message}`))
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats
      process.on('exit', () => {
        for (const what of again) console.log(`TRIED AGAIN  ${what}`)
        const more = `${pending ? `, ${pending} skipped` : ''}${again.length ? `, ${again.length} tried again` : ''}`
        console.log(`${passes} passed, ${failures} failed${more}`)
      })
    })
  }
}
