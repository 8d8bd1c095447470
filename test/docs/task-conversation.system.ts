// Tests the example conversation of docs/plugins/tasks.md: its shell blocks run and return the documented output.
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { expect } from 'chai'
import { loadHost } from '../../core/create-host.ts'
import type { Host } from '../../core/host.ts'
import { ROOT, readBlocks, readPage } from '../support/doc-blocks.ts'
import { eventually } from '../support/eventually.ts'
import { createTestLog } from '../support/start-host.ts'

const PAGE = 'docs/plugins/tasks.md'
const section = readPage(PAGE).split('## A conversation\n')[1]?.split(/^## /m)[0] ?? ''
const blocks = readBlocks(PAGE, section)
const inLanguage = (language: string) => blocks.filter(block => block.language === language).map(({ code }) => code)

/** What every run has anew; words of progress are told at most once a second. */
const CHANGES =
  /"(taskId|createdAt|lastUpdatedAt|ttlMs|statusMessage)": ?("[^"]*"|\d+)|,?"_meta": ?\{(?:[^{}]|\{[^{}]*\})*\}/g
const settled = (text: string): unknown =>
  JSON.parse(text.replaceAll(CHANGES, (_, name?: string) => (name === undefined ? '' : `"${name}":"…"`)))

describe('Example conversation of docs/plugins/tasks.md', () => {
  let host: Host | undefined
  let url: string
  let listener: ChildProcess | undefined
  before(async () => {
    const folder = join(ROOT, 'examples/tasks')
    process.env['PORT'] = '0'
    host = await loadHost({ cwd: folder, file: join(folder, 'mcp.config.ts') }, createTestLog())
    await host.listen()
    url = `${host.url}/mcp`
  })
  after(async () => {
    delete process.env['PORT']
    listener?.kill()
    await host?.close({ grace: 0 })
  })

  const here = (code: string) => code.replaceAll('http://127.0.0.1:3000/mcp', url)

  /** Runs shell while this process serves. */
  function run(script: string): Promise<string> {
    const child = spawn('sh', ['-ec', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    return new Promise(resolve => {
      let said = ''
      child.stdout.setEncoding('utf8').on('data', text => {
        said += text
      })
      child.on('close', () => resolve(said))
    })
  }

  it('works with curl', async () => {
    const [, begin = '', get = '', listen = '', update = '', cancel = ''] = inLanguage('sh').map(here)
    const [created = '', asks = '', told = ''] = inLanguage('json')
    const functions = begin.slice(0, begin.indexOf('\n}\n') + 3)
    const answer = await run(begin)
    const { taskId } = JSON.parse(answer).result
    expect(settled(JSON.stringify(JSON.parse(answer).result))).to.deep.equal(settled(created))

    const inShell = (code: string) => `${functions}ID='${taskId}'\n${code.replace(/^ID=.*\n/, '')}`
    const question = await eventually(
      'the task asks',
      () => run(inShell(get)),
      text => text.includes('input_required'),
    )
    expect(settled(JSON.stringify(JSON.parse(question).result))).to.deep.equal(settled(asks))

    let heard = ''
    const child = spawn('sh', ['-ec', inShell(listen).replace('curl', 'exec curl')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    listener = child
    child.stdout.setEncoding('utf8').on('data', text => {
      heard += text
    })
    await eventually('it listens', () => heard.includes('input_required'))
    expect(JSON.parse(await run(inShell(update))).result).to.include({ resultType: 'complete' })
    await eventually('it is told', () => /"completed".*\n\n/.test(heard))
    const last =
      heard
        .split('\n')
        .filter(line => line.startsWith('data: '))
        .at(-1) ?? ''
    expect(settled(last.slice('data: '.length))).to.deep.equal(settled(told))
    // As the page says, of one that is over as well.
    expect(JSON.parse(await run(inShell(cancel))).result).to.include({ resultType: 'complete' })

    const beside = listen.replace('"notifications": { "taskIds": [', '"taskIds": [').replace("] }'", "]'")
    expect(JSON.parse(await run(inShell(beside))).error).to.include({ code: -32602 })
  })

  it('works with the official packages', async () => {
    const file = join(ROOT, 'examples/tasks/official-client.ts')
    const printed = await run(`'${process.execPath}' --import tsx '${file}' '${url}'`)
    expect(printed).to.include('completed').and.include('feb is closed.')
  })
})
