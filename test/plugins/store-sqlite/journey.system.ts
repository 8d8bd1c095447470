// A host with store-sqlite, stopped, killed and restarted on the same file, with and without workers.
import { readdirSync } from 'node:fs'
import { expect } from 'chai'
import { configText, type Running, runCli, startCli, stopAll } from '../../cli/run-cli.ts'
import { linesOf, startWorkers } from '../../cli/start-workers.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { openStreamingSession, type StreamingSession } from '../../support/streaming-session.ts'
import { hasSqlite } from './support/sqlite-files.ts'

const COUNT = 30
/** `hang`: the number after which the call goes on only in another life. */
const TOOL = `defineTool({
  name: 'talk',
  input: { type: 'object', properties: { count: { type: 'integer' }, hang: { type: 'integer' } }, required: ['count'] },
  async handler({ count, hang }, { progress }) {
    for (let number = 1; number <= count; number++) {
      await progress(number, count)
      if (number === hang) await new Promise(() => undefined)
    }
    return String(process.pid)
  },
})`
const config = configText({
  tool: TOOL,
  http: '{ port: Number(process.env.TEST_PORT ?? 0) }',
  plugins: "'store-sqlite': { file: './state/sessions.db' }",
})

/** The address of before. */
const at = (url?: string) => (url === undefined ? {} : { TEST_PORT: new URL(url).port })

async function start(folder: string, url?: string): Promise<{ readonly running: Running; readonly url: string }> {
  const running = startCli(['start'], folder, at(url))
  return { running, url: await running.listening() }
}

async function end({ running }: { readonly running: Running }, signal: 'SIGTERM' | 'SIGKILL') {
  running.child.kill(signal)
  return running.ended
}

/** What an answer tells: numbers of progress, then its text, or what its error says. */
const toldBy = (events: ReadonlyArray<{ readonly message: unknown }>) =>
  events.flatMap(({ message }) => {
    if (typeof message !== 'object' || message === null) return []
    const { params, result, error } = message as {
      readonly params?: { readonly progress: number }
      readonly result?: { readonly content: ReadonlyArray<{ readonly text: string }> }
      readonly error?: { readonly message: string }
    }
    return [params?.progress ?? result?.content[0]?.text ?? error?.message]
  })

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

/** Reads a call up to one number, and breaks its connection. */
async function readUpTo(session: StreamingSession, last: number, args: object) {
  const answer = await session.call('talk', { count: COUNT, ...args })
  const events = await answer.until(({ message }) => message?.params?.progress === last)
  answer.drop()
  return { told: toldBy(events), id: events.at(-1)?.id ?? '' }
}

/** Comes back, again where the host is not ready to answer yet. */
async function comeBack(session: StreamingSession, id: string) {
  const answer = await session.get(id)
  expect(answer.status).to.equal(200)
  return toldBy(await answer.rest())
}

/** Expects that startup of a second host fails with advice. */
async function expectLocked(folder: string, { child }: Running) {
  const { code, stderr } = await runCli(['start'], folder)
  expect(code).to.equal(1)
  expect(stderr).to.include(`${folder}/state/sessions.db`).and.to.include('another host uses the file')
  expect(stderr).to.include(`process ${child.pid}`).and.to.include('cluster-redis')
  expect(stderr).to.include('try again in 30 seconds')
}

if (hasSqlite) {
  describe('Host with store-sqlite', () => {
    after(async () => {
      await stopAll()
      await removeFolders()
    })

    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const lock = signal === 'SIGKILL' ? 'locks its file, ' : ''
      it(`${lock}resumes sessions after ${signal}, and delivers missed events once`, async () => {
        const folder = await makeFolder({ 'mcp.config.mjs': config })
        const first = await start(folder)
        if (signal === 'SIGKILL') await expectLocked(folder, first.running)
        const session = await openStreamingSession(first.url)
        const finished = await readUpTo(session, 7, {})
        // To its end, so that all of it was told.
        const missedBefore = await comeBack(session, finished.id)
        const hanging = await readUpTo(session, 12, { hang: 12 })
        await end(first, signal)
        const second = await start(folder, first.url)
        expect(second.url).to.equal(first.url)
        const missed = await comeBack(session, finished.id)
        expect(missed).to.deep.equal(missedBefore)
        expect([...finished.told, ...missed]).to.deep.equal([...numbers(1, COUNT), String(first.running.child.pid)])
        const [cut, ...more] = await comeBack(session, hanging.id)
        expect([String(cut), more]).to.deep.equal([String(cut), []])
        expect(String(cut)).to.match(/lost|shutting down|cancel/)
        const again = await (await session.call('talk', { count: 2 })).rest()
        expect(toldBy(again)).to.deep.equal([1, 2, String(second.running.child.pid)])
        const { code, stderr } = await end(second, 'SIGTERM')
        // Who was killed could not say itself what became of its call.
        const told = linesOf(stderr).map(({ msg }) => msg)
        expect(told).to.deep.equal(signal === 'SIGKILL' ? ['failed the requests of a lost node'] : [])
        expect(code).to.equal(0)
        expect(readdirSync(`${folder}/state`).sort()).to.deep.equal(['.gitignore', 'sessions.db', 'sessions.db.lock'])
      })
    }

    it('shares sessions and streams between workers, and resumes them after a kill', async () => {
      const { url, workers, running, folder } = await startWorkers(2, config)
      const session = await openStreamingSession(url)
      const pids = new Set<unknown>()
      for (let call = 0; call < 30; call++) pids.add(toldBy(await (await session.call('talk', { count: 1 })).rest())[1])
      expect([...pids].sort()).to.deep.equal(workers.map(String).sort())
      const { told, id } = await readUpTo(session, 5, {})
      const missed = await comeBack(session, id)
      expect([...told, ...missed.slice(0, -1)]).to.deep.equal(numbers(1, COUNT))
      const pid = workers.map(String)
      expect(pid).to.include(missed.at(-1))
      running.child.kill('SIGKILL')
      await running.ended
      // Workers end when their primary is gone: until then the file is theirs.
      const next = startCli(['start'], folder, at(url))
      await next.listening()
      expect(toldBy(await (await session.call('talk', { count: 2 })).rest())).to.have.lengthOf(3)
      expect(await comeBack(session, id)).to.deep.equal(missed)
      next.child.kill('SIGTERM')
      expect((await next.ended).code).to.equal(0)
    })

    it('can be checked without creating the file', async () => {
      const folder = await makeFolder({ 'mcp.config.mjs': config })
      const { code, stdout, stderr } = await runCli(['check'], folder)
      expect([code, stderr], stdout).to.deep.equal([0, ''])
      expect(readdirSync(folder).sort()).to.deep.equal(['mcp.config.mjs', 'package.json'])
    })
  })
}
