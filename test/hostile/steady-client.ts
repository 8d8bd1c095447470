// A legitimate client during attacks: each response must be correct.
import { setTimeout as wait } from 'node:timers/promises'
import { Connection } from './connection.ts'
import { initializeParams, message, modernBytes, requestBytes } from './requests.ts'
import { createWatcher } from './response-checks.ts'
import type { Tally } from './tally.ts'
import type { Target } from './target.ts'

const KIND = 'steady'
/** Milliseconds between two calls. */
const PAUSE = 40
/** An address of its own, so that the attackers' bounds are not its. */
const ADDRESS = '127.0.0.99'

export interface SteadyClient {
  /** Ends it after its present call. */
  stop(): Promise<void>
  /** Milliseconds that each answer took. */
  readonly latencies: readonly number[]
}

interface Desk {
  /** The text of the answer's body, read as it should be. */
  ask(bytes: Buffer): Promise<string>
  close(): void
}

function createDesk(
  target: Target,
  tally: Tally,
  who: 'steady' | 'anonymous',
  latencies: number[],
  patience: number,
): Desk {
  let connection: Connection | undefined
  return {
    async ask(bytes) {
      if (!connection || connection.closed) {
        connection = await Connection.open(
          target.url,
          who,
          createWatcher(tally, target.markers, `${KIND}:0`, who),
          ADDRESS,
        )
      }
      const current = connection
      const before = current.answers.length
      const start = performance.now()
      current.send(bytes)
      await current.until(() => current.answers.length > before, patience)
      latencies.push(performance.now() - start)
      const answer = current.answers[before]
      if (!answer || answer.broken) {
        current.drop()
        throw new Error(answer ? 'the answer broke off' : 'no answer')
      }
      // What is kept of old answers would only grow.
      current.answers.length = 0
      current.heads.length = 0
      if (answer.status !== 200 && answer.status !== 202) throw new Error(`status ${answer.status}: ${answer.body}`)
      return `${[...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n')}\n\n${answer.body}`
    },
    close: () => connection?.drop(),
  }
}

const expect = (text: string, holds: (text: string) => boolean) => {
  if (!holds(text)) throw new Error(`wrong answer: ${text.slice(0, 200)} ... ${text.slice(-900)}`)
}

/** Begins to call; what is not answered as it should be is a fault. */
export function startSteadyClient(
  target: Target,
  tally: Tally,
  rounds: () => readonly string[],
  patience: number,
): SteadyClient {
  const latencies: number[] = []
  let stopped = false

  async function repeat(desk: Desk, step: (index: number) => Promise<void>) {
    for (let index = 0; !stopped; index++) {
      try {
        await step(index)
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error)
        tally.fault({ kind: 'steady', text, rounds: rounds() })
        // A session that was lost is one fault, not one a call.
        if (text.startsWith('status 404')) session = undefined
        await wait(200)
      }
      await wait(PAUSE)
    }
    desk.close()
  }

  const perRequest = createDesk(target, tally, 'anonymous', latencies, patience)
  const inSession = createDesk(target, tally, 'steady', latencies, patience)
  let session: string | undefined

  async function callInSession(index: number) {
    const send = (body: object, id = session) =>
      inSession.ask(
        requestBytes(target, {
          who: 'steady',
          body: message(body as never),
          headers: { 'Mcp-Session-Id': id, 'MCP-Protocol-Version': '2025-11-25' },
        }),
      )
    if (session === undefined) {
      const opened = await send({ id: 0, method: 'initialize', params: initializeParams() }, undefined)
      session = /mcp-session-id: (\S+)/.exec(opened)?.[1]
      await send({ id: 'level', method: 'logging/setLevel', params: { level: 'debug' } })
    }
    const name = index % 20 === 19 ? 'talk' : 'whoami'
    const params = { name, arguments: {}, _meta: { progressToken: index } }
    const text = await send({ id: index + 1, method: 'tools/call', params })
    if (name === 'whoami') expect(text, it => it.includes(target.markers.steady) && it.includes(`"id":${index + 1}`))
    else expect(text, it => it.split('notifications/progress').length === 21 && it.includes('"said"'))
  }

  const loops = [
    repeat(perRequest, async index => {
      const call = modernBytes(
        target,
        'tools/call',
        { name: 'add', arguments: { a: index, b: 1 } },
        { path: '/stateless' },
      )
      expect(await perRequest.ask(call), text => text.includes(`"sum":${index + 1}`))
    }),
    repeat(inSession, callInSession),
  ]
  return {
    latencies,
    async stop() {
      stopped = true
      await Promise.all(loops)
    },
  }
}
