// Tests which stack frames the log shows, and how it attributes them.
import { join } from 'node:path'
import { expect } from 'chai'
import { attributeError, attributionOf, describeFailure, shownStack } from '../../core/http/describe-thrown.ts'

const ROOT = join(import.meta.dirname, '../..')
const stack = (...frames: string[]) => ['Error: no', ...frames.map(frame => `    at ${frame}`)].join('\n')

describe('Shown stack frames', () => {
  it('include frames of the author relative to the config folder and count the others', () => {
    const shown = shownStack(
      stack(
        'look (file:///srv/app/tools/stock.ts?generation=2:8:9)',
        'query (/srv/app/node_modules/pg/lib/client.js:5:1)',
        'async Object.handler (/srv/app/tools/stock.ts:16:12)',
        `runToValue (file://${ROOT}/dist/core/mcp/calls/context.js:1:2)`,
        'dispatch (/srv/app/node_modules/koa-compose/index.js:47:32)',
        'node:internal/process/task_queues:95:5',
        'async Promise.all (index 0)',
      ),
      '/srv/app',
    )
    expect(shown).to.deep.equal({
      at: 'tools/stock.ts:8:9',
      frames: [
        'at look (tools/stock.ts:8:9)',
        'at query (node_modules/pg/lib/client.js:5:1)',
        'at async Object.handler (tools/stock.ts:16:12)',
      ],
      hidden: 3,
    })
  })

  it("start at the author's frame if a package threw the error", () => {
    const frames = stack('query (/srv/app/node_modules/pg/lib/client.js:5:1)', 'look (/srv/app/tools/stock.ts:8:9)')
    expect(shownStack(frames, '/srv/app').at).to.equal('tools/stock.ts:8:9')
  })

  it('show host frames if there is no author frame', () => {
    const shown = shownStack(stack(`find (file://${ROOT}/core/mcp/routes/view.ts:3:4)`, 'node:net:1:2'), '/srv/app')
    expect(shown).to.deep.equal({
      at: `${ROOT}/core/mcp/routes/view.ts:3:4`,
      frames: [`at find (${ROOT}/core/mcp/routes/view.ts:3:4)`],
      hidden: 1,
    })
  })

  it('are empty without a readable stack', () => {
    expect(shownStack('', '/')).to.deep.equal({ frames: [], hidden: 0 })
    expect(shownStack('Error: a\n    at nowhere\n    at (x:y:z)', '/')).to.deep.equal({ frames: [], hidden: 0 })
  })
})

describe('Logged failure', () => {
  const about = { fullStack: false, directory: ROOT }

  it('has location, frames and cause', () => {
    const failure = describeFailure(new Error('cannot', { cause: new TypeError('gone') }), about)
    expect(failure).to.deep.include({ type: 'Error', message: 'cannot', cause: 'gone' })
    expect(failure.at).to.match(/^test\/http\/log-stack\.test\.ts:\d+:\d+$/)
    expect(failure.stack).to.match(/^Error: cannot\n {4}at .*log-stack.*\ncaused by: TypeError: gone\n {4}at /s)
    expect(failure.hidden ?? '').not.to.match(/[^\d]0 frames/)
  })

  it('is complete at log level debug', () => {
    const { stack: whole, hidden } = describeFailure(new Error('cannot'), { ...about, fullStack: true })
    expect(whole).to.match(/^Error: cannot\n {4}at .*\n/)
    expect(hidden).to.equal(undefined)
  })

  it('is limited for circular and long cause chains', () => {
    const circle = new Error('circle')
    circle.cause = circle
    expect(describeFailure(circle, about).stack?.match(/caused by/g)).to.have.length(3)
    const long = Object.assign(new Error('x'.repeat(50_000)), { cause: new Error('y'.repeat(50_000)) })
    expect(JSON.stringify(describeFailure(long, about)).length).to.be.lessThan(15_000)
    expect(describeFailure('a text', about)).to.deep.equal({ message: 'a text' })
    expect(describeFailure(Object.assign(new Error('a'), { stack: 7 }), about)).to.deep.equal({
      type: 'Error',
      message: 'a',
    })
  })

  it('names the first plugin that was blamed', () => {
    const error = new Error('a')
    attributeError(error, 'audit')
    attributeError(error, 'other')
    attributeError('no object', 'audit')
    expect([error, new Error('b'), 'no object'].map(attributionOf)).to.deep.equal([{ plugin: 'audit' }, {}, {}])
  })
})
