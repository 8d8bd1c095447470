// Calls tools of several nodes in both protocol eras. A node receives a call once; the response to its request goes to any node.
import { setTimeout as wait } from 'node:timers/promises'
import { callTool } from '../../fixtures/asking-client.ts'
import type { RpcMessage } from '../../support/rpc.ts'
import type { SeededRandom } from '../../support/seeded-random.ts'
import { nextMessage, openSession, type SessionClient } from '../../support/session-client.ts'
import { at } from './nodes.ts'

/** Undefined: the connection ended first, so the client does not know whether the call was executed. */
export type CallEnd = { readonly text: string; readonly isError: boolean } | undefined

export interface EraClient {
  call(tool: string, args: { readonly tag: string; readonly fate: number }): Promise<CallEnd>
}

const CAPABILITIES = { elicitation: { form: {} } }
/** Milliseconds before a request is sent to another node. */
const PAUSE = 50
const MAX_TRIES = 400

/** True if the node did not receive the request. */
const isNotSent = (error: unknown) =>
  [error, (error as Error).cause].some(one => (one as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED')

const acceptFor = (tag: string) => ({ action: 'accept', content: { name: tag } })

function endOf(message: RpcMessage): CallEnd {
  if (message === undefined) return undefined
  const { result, error } = message
  if (!error && !result?.content) throw new Error(`neither a result nor an error: ${JSON.stringify(message)}`)
  return { text: String(error?.message ?? result.content[0].text), isError: error !== undefined || !!result.isError }
}

/** `urls`: of the nodes. Requests go to random nodes. */
export function createEraClients(urls: readonly string[], random: SeededRandom) {
  const anyUrl = () => urls[random.below(urls.length)] as string

  /** Sends a request, to another node while `canRepeat` permits it. */
  async function send<Answer>(perform: (url: string) => Promise<Answer>, canRepeat = (_error: unknown) => true) {
    for (let tries = 1; ; tries++) {
      try {
        return await perform(anyUrl())
      } catch (error) {
        if (!canRepeat(error) || tries === MAX_TRIES) throw error
        await wait(PAUSE)
      }
    }
  }

  const modern: EraClient = {
    async call(tool, args) {
      const begin = (url: string) => callTool(url, tool, { capabilities: CAPABILITIES }, args)
      const first = await send(begin, isNotSent).catch(() => undefined)
      const { inputRequests, requestState } = first?.message?.result ?? {}
      if (!inputRequests) return endOf(first?.message)
      const answers = Object.fromEntries(Object.keys(inputRequests).map(key => [key, acceptFor(args.tag)]))
      const retry = { capabilities: CAPABILITIES, state: requestState, answers }
      return endOf((await send(url => callTool(url, tool, retry, args))).message)
    },
  }

  async function createLegacy(): Promise<EraClient> {
    const session: SessionClient = await openSession(anyUrl(), { capabilities: CAPABILITIES })
    return {
      async call(tool, args) {
        const stream = await send(url => at(url, session).call(tool, args), isNotSent).catch(() => undefined)
        if (!stream) return undefined
        if (!stream.headers['content-type']?.startsWith('text/event-stream'))
          return endOf(JSON.parse((await stream.text()) || 'null') ?? undefined)
        for (;;) {
          const message = await nextMessage(stream)
          if (message?.method !== 'elicitation/create') {
            if (message?.method === undefined) return endOf(message)
            continue
          }
          const response = { id: message.id, result: acceptFor(args.tag) }
          await send(url => at(url, session).send(response))
        }
      },
    }
  }

  return { modern, createLegacy }
}
