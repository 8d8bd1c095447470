// Tests with generated configs and callers: a tool, prompt or resource responds the same to every client and call path, and
// callers who are not allowed to use it receive nothing of it. SEED=<number> repeats a run, and shrinks the failing case.
import { expect } from 'chai'
import fc from 'fast-check'
import { eventually } from '../support/eventually.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { caseCount } from '../support/thorough.ts'
import { type Answer, type Client, everyClient, headersOf } from './support/every-client.ts'
import {
  ALWAYS,
  type Caller,
  type GeneratedConfig,
  generated,
  hostConfig,
  type ItemDraft,
  isShown,
  LIMIT,
  SECRET,
  UNKNOWN,
  uriOf,
  type Verdict,
  verdictFor,
} from './support/generated-config.ts'

const RUNS = caseCount(5, 1)
const GIVEN_SEED = process.env['SEED']
const SEED = Number(GIVEN_SEED ?? Math.floor(Math.random() * 2 ** 31))

type Outcome = Verdict | 'too many' | 'needs tasks'

/** An outcome, and the part of the response that must be the same for every client. */
interface Result {
  readonly outcome: Outcome
  readonly body: Record<string, unknown>
}

interface Use {
  readonly method: string
  readonly params: (word: string) => Record<string, unknown>
}

const completion = (ref: (word: string) => object, name: string): Use => ({
  method: 'completion/complete',
  params: word => ({ ref: ref(word), argument: { name, value: '' } }),
})
/** The requests for an item of each kind. */
const USES: Readonly<Record<ItemDraft['kind'], readonly Use[]>> = {
  tool: [
    { method: 'tools/call', params: word => ({ name: word, arguments: { [word]: 7 } }) },
    { method: 'tools/call', params: word => ({ name: word, arguments: {} }) },
  ],
  prompt: [
    { method: 'prompts/get', params: word => ({ name: word }) },
    completion(name => ({ type: 'ref/prompt', name }), 'topic'),
  ],
  resource: [
    { method: 'resources/read', params: word => ({ uri: uriOf(word) }) },
    completion(word => ({ type: 'ref/resource', uri: `${word}://{id}` }), 'id'),
  ],
}

const byCallTool = ({ method, params }: Use): Use => ({
  method,
  params: word => ({ name: 'call_tool', arguments: params(word) }),
})

function outcomeOf({ status, message }: Answer): Outcome {
  const { error, result } = message ?? {}
  if (/^(Forbidden|Authentication required)/.test(error?.message)) return 'denied'
  expect(status, JSON.stringify(message)).not.to.be.oneOf([401, 403])
  if (error?.data?.reason === 'rate-limited') return 'too many'
  if (error?.code === -32021) return 'needs tasks'
  if (error) expect(error.code, JSON.stringify(message)).to.be.oneOf([-32602, -32002])
  // call_tool reports an unknown tool as a result, for the model.
  const isUnknown = result?.isError && /^There is no tool "/.test(result.content[0].text)
  return error || isUnknown ? 'unknown' : 'answered'
}

/** The outcome of a task, in the form of a direct response. */
async function awaitTask(client: Client, caller: Caller, taskId: string): Promise<Answer> {
  const look = async () =>
    (await client.request(caller, 'tasks/get', { taskId }, { 'Mcp-Name': taskId })).message.result
  const task = await eventually('the task is over', look, ({ status }) => /completed|failed/.test(status))
  return { message: task.status === 'failed' ? { error: task.error } : { result: task.result } }
}

const RESULT_FIELDS = ['content', 'structuredContent', 'isError', 'messages', 'contents', 'completion']

function resultOf(answer: Answer): Result {
  const outcome = outcomeOf(answer)
  const { error, result = {} } = answer.message
  if (outcome === 'denied') return { outcome, body: error }
  if (outcome !== 'answered') return { outcome, body: {} }
  return { outcome, body: Object.fromEntries(RESULT_FIELDS.map(name => [name, result[name]])) }
}

/** The state of one generated case. */
interface Case {
  readonly config: GeneratedConfig
  readonly clients: readonly Client[]
  readonly callsOf: Map<string, number>
  readonly tasks: Array<{ readonly taskId: string; readonly caller: Caller; readonly item: ItemDraft }>
}

/** The outcome that the model expects; counts calls of limited tools. */
function expectedOutcome(
  { config, callsOf }: Case,
  client: Client,
  caller: Caller,
  item: ItemDraft,
  use: Use,
): Outcome {
  const verdict = verdictFor(config, caller, item)
  if (verdict !== 'answered') return verdict
  if (item.limited) {
    const key = `${caller.user?.subject} ${item.word}`
    const calls = (callsOf.get(key) ?? 0) + 1
    callsOf.set(key, calls)
    if (calls > LIMIT) return 'too many'
  }
  const isValid = JSON.stringify(use.params(item.word)).includes(':7')
  return item.task === 'required' && client.era === 'modern' && !client.knowsTasks && isValid
    ? 'needs tasks'
    : 'answered'
}

/** Compares with the response for a name that does not exist. */
async function expectSameAsUnknown(client: Client, caller: Caller, use: Use, word: string, message: RpcMessage) {
  const { message: other } = await client.request(caller, use.method, use.params(UNKNOWN))
  const anonymised = ({ error, result }: RpcMessage, name: string) =>
    JSON.stringify({ error, result }).replaceAll(name, 'NAME')
  expect(anonymised(message, word)).to.equal(anonymised(other, UNKNOWN))
}

/** Sends the requests for an item from every client, by name and by call_tool, and compares the responses. */
async function compareClients(of: Case, caller: Caller, item: ItemDraft) {
  const { config, clients, tasks } = of
  for (const use of USES[item.kind]) {
    const bodies = new Map<Outcome, Result['body']>()
    const challenges = new Set<string>()
    const ways = config.search && item.kind === 'tool' ? [use, byCallTool(use)] : [use]
    for (const client of clients) {
      for (const way of ways) {
        const wanted = expectedOutcome(of, client, caller, item, use)
        let answer = await client.request(caller, way.method, way.params(item.word))
        const params = JSON.stringify(way.params(item.word))
        const where = `${client.name}, ${way.method} ${params}, ${JSON.stringify({ caller, item })}`
        const received = JSON.stringify(answer)
        const { taskId } = answer.message.result ?? {}
        if (taskId !== undefined) {
          tasks.push({ taskId, caller, item })
          answer = await awaitTask(client, caller, taskId)
        }
        expect(`${received}${JSON.stringify(answer)}`, where).not.to.include(SECRET)
        const { outcome, body } = resultOf(answer)
        expect(outcome, `${where}: ${received}`).to.equal(wanted)
        if (outcome === 'unknown') await expectSameAsUnknown(client, caller, way, item.word, answer.message)
        if (outcome === 'denied') {
          expect(received, where).not.to.include(item.word)
          if (answer.status !== undefined && answer.challenge) challenges.add(`${answer.status} ${answer.challenge}`)
        }
        const first = bodies.get(outcome) ?? body
        bodies.set(outcome, first)
        expect(body, `${where} as by the first client: ${received}`).to.deep.equal(first)
      }
    }
    expect([...challenges], JSON.stringify({ caller, item })).to.have.lengthOf.at.most(1)
  }
}

const LISTS = [
  ['tool', 'tools/list', 'tools'],
  ['prompt', 'prompts/list', 'prompts'],
  ['resource', 'resources/templates/list', 'resourceTemplates'],
] as const

/** Close enough that a host could suggest the correct name. */
const misspell = (word: string) => `${word.slice(0, -1)}x`

/** Lists, searches and suggestions contain the visible items, and nothing of hidden ones. */
async function expectVisibleOnly({ config }: Case, client: Client, caller: Caller) {
  const { items, search } = config
  const where = `${client.name}, ${JSON.stringify(caller)}`
  const hidden = items.filter(item => !isShown(config, caller, item))
  const ask = async (method: string, params: Record<string, unknown> = {}) => {
    const answer = await client.request(caller, method, params)
    const text = JSON.stringify(answer)
    for (const { word } of hidden) expect(text, `${where}, ${method} ${JSON.stringify(params)}`).not.to.include(word)
    return answer
  }
  for (const [kind, method, field] of LISTS) {
    const { message } = await ask(method)
    if (outcomeOf({ message }) === 'denied') continue
    const isListed = (word: string) => !search || kind !== 'tool' || word.includes('a')
    const shown = items.filter(item => item.kind === kind && isShown(config, caller, item) && isListed(item.word))
    const found = search && kind === 'tool' ? ['find_tools', 'call_tool'] : []
    const names = message.result[field].map(({ name }: { name: string }) => name)
    const wanted = [...shown.map(({ word }) => word), ALWAYS[kind], ...found]
    if (kind === 'tool' && names.includes('never_called')) wanted.push('never_called')
    expect(names, `${where}, ${method}`).to.have.members(wanted)
  }
  if (client.era === 'modern') await ask('server/discover')
  if (client.knowsTasks) await ask('io.mcp-host/tasks/list')
  for (const { word } of hidden.filter(({ kind }) => kind === 'tool').slice(0, 2)) {
    await ask('tools/call', { name: misspell(word), arguments: {} })
    if (!search) continue
    await ask('tools/call', { name: 'call_tool', arguments: { name: misspell(word) } })
    await ask('tools/call', { name: 'find_tools', arguments: { query: misspell(word) } })
  }
  if (!search) return
  const { message } = await ask('tools/call', { name: 'find_tools', arguments: { query: 'reads ledger', limit: 20 } })
  if (outcomeOf({ message }) === 'denied') return
  const callable = items.filter(item => item.kind === 'tool' && verdictFor(config, caller, item) === 'answered')
  const found = JSON.parse(message.result.content[0].text).tools.map(({ name }: { name: string }) => name)
  expect(found, where).to.have.members([...callable.map(({ word }) => word), ALWAYS.tool])
}

/** Only the owner of a task can read it, with a token that is allowed to call its tool. Others get the error of an unknown id. */
async function expectOwnTasks({ config, clients, tasks }: Case, callers: readonly Caller[]) {
  const client = clients.find(({ knowsTasks }) => knowsTasks)
  if (!client) return
  const get = async (caller: Caller, taskId: string) =>
    (await client.request(caller, 'tasks/get', { taskId }, { 'Mcp-Name': taskId })).message
  for (const { taskId, caller: owner, item } of tasks) {
    for (const caller of callers) {
      const { result, error } = await get(caller, taskId)
      const isOwner = caller.user?.subject === owner.user?.subject
      const where = `tasks/get of ${JSON.stringify({ item, owner, caller, error })}`
      if (isOwner && verdictFor(config, caller, item) === 'answered') expect(result?.taskId, where).to.equal(taskId)
      else expect(error, where).to.deep.equal((await get(caller, 'A'.repeat(taskId.length))).error)
    }
  }
}

/** The URL of a toolset that the parameter cannot name responds as if the toolset did not exist. */
async function expectNoPath(url: string, path: string, caller: Caller) {
  const [hidden, other] = [path, path.replace('added', UNKNOWN)]
  const read = async (path: string) => {
    const { status, text } = await modern(`${url}${path}`, 'tools/list', {}, { headers: headersOf(caller), id: 1 })
    return { status, text: text.replaceAll(path, 'PATH') }
  }
  expect((await read(hidden)).status).to.equal(404)
  expect(await read(hidden)).to.deep.equal(await read(other))
}

after(stopHosts)

describe('tools, prompts and resources of generated configs', () => {
  it('respond the same to every client and call path, and reveal nothing to callers who are not allowed to use them', async function () {
    this.timeout(900_000)
    const property = fc.asyncProperty(generated, async ([config, callers]) => {
      const { config: given, atRuntime, path, hiddenPath } = hostConfig(config)
      const { host, url } = await startHost(given)
      const { tools, prompts, resources } = host.runtime
      for (const { definition, toolset } of atRuntime) {
        if ('uriTemplate' in definition) resources.add(definition as Parameters<typeof resources.add>[0], { toolset })
        else if ('input' in definition) tools.add(definition as Parameters<typeof tools.add>[0], { toolset })
        else prompts.add(definition as Parameters<typeof prompts.add>[0], { toolset })
      }
      const [callsOf, tasks]: [Case['callsOf'], Case['tasks']] = [new Map(), []]
      try {
        for (const tokens of callers) {
          const clients = everyClient(`${url}${path}`, config)
          const of = { config, clients, callsOf, tasks }
          for (const caller of tokens) {
            for (const item of config.items) await compareClients(of, caller, item)
            for (const client of clients) await expectVisibleOnly(of, client, caller)
          }
          await expectOwnTasks(of, callers.flat())
          for (const caller of tokens) if (hiddenPath !== undefined) await expectNoPath(url, hiddenPath, caller)
          for (const client of clients) await client.close()
        }
      } finally {
        await stopHosts()
      }
    })
    await fc.assert(property, { numRuns: RUNS, seed: SEED, endOnFailure: GIVEN_SEED === undefined })
  })
})
