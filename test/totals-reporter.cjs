// Mocha's spec reporter, followed by one plain line of totals that any tool can read, and by the tests that passed only when
// they were tried again (`--retries`), each with why: they are to be mended. FAILED_FILES names a file that gets, one a line, the
// files with a failure.
const { relative } = require('node:path')
const { appendFileSync } = require('node:fs')
const { reporters, Runner } = require('mocha')

module.exports = class TotalsReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options)
    runner.once(Runner.constants.EVENT_RUN_BEGIN, () => console.log(`\n  node ${process.version}`))
    const again = []
    runner.on(Runner.constants.EVENT_TEST_RETRY, (test, error) => again.push(`${test.fullTitle()}: ${error?.message}`))
    const failed = new Set()
    runner.on(Runner.constants.EVENT_TEST_FAIL, test => test.file && failed.add(relative(process.cwd(), test.file)))
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats
      const list = process.env.FAILED_FILES
      if (list && failed.size > 0) appendFileSync(list, [...failed].map(file => `${file}\n`).join(''))
      process.on('exit', () => {
        for (const what of again) console.log(`TRIED AGAIN  ${what}`)
        const more = `${pending ? `, ${pending} skipped` : ''}${again.length ? `, ${again.length} tried again` : ''}`
        console.log(`${passes} passed, ${failures} failed${more}`)
      })
    })
  }
}
