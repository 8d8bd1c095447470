// Mocha's spec reporter, followed by one plain line of totals that any tool can read, and by the tests that passed only when
// they were tried again (`--retries`), each with why: they are to be mended. FAILURES names a folder: the names of
// the files with a failure are added to `files` in it, one a line, and what failed in them to `texts`; where one file runs after
// the other, all of them to `planned` at the begin, and each to `done` when it is over.
const { join, relative } = require('node:path')
const { appendFileSync } = require('node:fs')
const { reporters, Runner } = require('mocha')

/** A failure, for who runs all of this. */
function keep(folder, test, error) {
  const file = test.file ? relative(process.cwd(), test.file) : undefined
  if (file) appendFileSync(join(folder, 'files'), `${file}\n`)
  appendFileSync(
    join(folder, 'texts'),
    `${file}: ${test.fullTitle()}\n${String(error?.stack ?? error).slice(0, 2_000)}\n\n`,
  )
}

/** What is left of a run that is ended from outside. Workers do not tell which files there are. */
function keepProgress(folder, runner) {
  const { EVENT_RUN_BEGIN, EVENT_SUITE_END } = Runner.constants
  const add = (name, suite) => appendFileSync(join(folder, name), `${suite.title}\n`)
  runner.once(EVENT_RUN_BEGIN, () => {
    for (const suite of runner.suite?.suites ?? []) add('planned', suite)
  })
  runner.on(EVENT_SUITE_END, suite => {
    if (suite.parent?.root) add('done', suite)
  })
}

module.exports = class TotalsReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options)
    runner.once(Runner.constants.EVENT_RUN_BEGIN, () => console.log(`\n  node ${process.version}`))
    const again = []
    runner.on(Runner.constants.EVENT_TEST_RETRY, (test, error) => again.push(`${test.fullTitle()}: ${error?.message}`))
    const folder = process.env.FAILURES
    if (folder) {
      runner.on(Runner.constants.EVENT_TEST_FAIL, (test, error) => keep(folder, test, error))
      keepProgress(folder, runner)
    }
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
