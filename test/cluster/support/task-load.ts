// Clients that make tasks at whatever node answers, and wait for each until they are told how it ended; and what the tools of
// tasks.config.ts wrote down meanwhile. For the chaos of tasks.
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { META } from '../../../core/transport.ts'
import { modern, type RpcAnswer } from '../../support/rpc.ts'

const meta = { [META.clientCapabilities]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } }

/** Milliseconds: of a lease that lapses, of those who look for it, and of whoever runs it then. */
const PATIENCE = 120_000
/** Milliseconds between two polls of a task. Hundreds of clients poll at the same time. */
const POLL_INTERVAL = 500
/** Tries to make one task, 50 ms apart. */
const MAX_TRIES = 2_000

type Tool = 'once' | 'again'

/** A task that somebody was told of. */
interface Acknowledged {
  readonly key: string
  readonly tool: Tool
  readonly taskId: string
}

/** How a client was told that it ended; `unknown`: there is no such task. */
type Told = 'completed' | 'failed' | 'cancelled' | 'unknown'

/** Undefined where nobody answered, or what did said that it cannot now. */
async function ask(url: string, method: string, params: Record<string, unknown>): Promise<RpcAnswer | undefined> {
  const name = params['taskId'] ?? params['name']
  const options = { meta, headers: { 'Mcp-Name': String(name) }, init: { signal: AbortSignal.timeout(5_000) } }
  const answer = await modern(url, method, params, options).catch(() => undefined)
  return answer && answer.status < 500 && answer.status !== 429 ? answer : undefined
}

/** Makes a task; undefined where it was not acknowledged. */
async function make(url: string, tool: Tool, key: string, time: number): Promise<Acknowledged | undefined> {
  const answer = await ask(url, 'tools/call', { name: tool, arguments: { key, time } })
  const taskId = answer?.message?.result?.taskId
  return typeof taskId === 'string' ? { key, tool, taskId } : undefined
}

/** Asks one node after the other until one says that it ended; undefined where none does within `patience` milliseconds. */
async function waitFor(
  { taskId }: Acknowledged,
  urls: () => readonly string[],
  patience: number,
): Promise<Told | undefined> {
  const end = performance.now() + patience
  for (let turn = 0; performance.now() < end; turn++) {
    const all = urls()
    const url = all[turn % all.length]
    const message = url === undefined ? undefined : (await ask(url, 'tasks/get', { taskId }))?.message
    if (message?.error?.code === -32602) return 'unknown'
    const status = message?.result?.status
    if (['completed', 'failed', 'cancelled'].includes(status)) return status
    await pause(POLL_INTERVAL)
  }
  return undefined
}

/** Clients that make tasks, eight at a time, and wait for each. */
export async function drive(crew: { urls(): readonly string[] }, count: number, time: () => number, prefix = '') {
  const waiting: Array<Promise<void>> = []
  const told = new Map<Acknowledged, Told | undefined>()
  let next = 0
  let refused = 0
  async function client() {
    while (next < count) {
      const number = next++
      const tool: Tool = number % 2 ? 'again' : 'once'
      for (let attempt = 0; ; attempt++) {
        if (attempt === MAX_TRIES) throw new Error(`no node made task ${number} in ${MAX_TRIES} tries`)
        const urls = crew.urls()
        const url = urls[(number + attempt) % Math.max(1, urls.length)]
        const task = url && (await make(url, tool, `${tool}-${prefix}${number}-${attempt}`, time()))
        if (task) {
          told.set(task, undefined)
          waiting.push(waitFor(task, () => crew.urls(), PATIENCE).then(how => void told.set(task, how)))
          break
        }
        refused++
        await pause(50)
      }
    }
  }
  await Promise.all(Array.from({ length: 8 }, client))
  return {
    acknowledged: told.size,
    get refused() {
      return refused
    },
    async settled() {
      await Promise.all(waiting)
      return told
    },
  }
}

/** How often each key began and ended. */
export function readJournal(file: string) {
  const began = new Map<string, number>()
  const ended = new Map<string, number>()
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const [what, key = ''] = line.split(' ')
    const counts = what === 'began' ? began : ended
    if (key !== '') counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return { began, ended }
}

/** What became of all of them. */
export function tallyOf(told: ReadonlyMap<Acknowledged, Told | undefined>, journal: ReturnType<typeof readJournal>) {
  const tally = { completed: 0, failed: 0, cancelled: 0, unknown: 0, untold: 0 }
  for (const how of told.values()) tally[how ?? 'untold']++
  const of = (tool: Tool) => [...told.keys()].filter(task => task.tool === tool)
  const runs = (tool: Tool) => [...journal.began].filter(([key]) => key.startsWith(`${tool}-`))
  return {
    ...tally,
    /** Whose client was told a result that nobody made. */
    madeUp: [...told].filter(([{ key }, how]) => how === 'completed' && !journal.ended.has(key)).length,
    onceRunTwice: runs('once').filter(([, count]) => count > 1).length,
    againRunAgain: runs('again').filter(([, count]) => count > 1).length,
    againNotCompleted: of('again').filter(task => told.get(task) !== 'completed').length,
    onceNotCompleted: of('once').filter(task => told.get(task) !== 'completed').length,
  }
}
