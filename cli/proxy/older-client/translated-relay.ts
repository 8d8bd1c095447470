// A relay for clients that open with `initialize`. Where the server takes that, every line goes through as it is; where it
// speaks 2026-07-28 alone, what both say is translated from then on.
import { once } from 'node:events'
import { PassThrough, type Readable, Writable } from 'node:stream'
import { isObject } from '../../../core/mcp/is-object.ts'
import { MODERN_REVISION } from '../../../core/mcp/revisions.ts'
import { type Line, readLines } from '../../../plugins/transport-stdio/lines.ts'
import { createOutput } from '../../../plugins/transport-stdio/output.ts'
import { sleep } from '../link.ts'
import {
  answeredId,
  errorLine,
  Failure,
  type Fields,
  type Id,
  ownVersion,
  type Request,
  readMessages,
  readOutgoing,
} from '../messages.ts'
import { MAX_LINE, type Relay, type RelaySettings, startRelay, textOf } from '../relay.ts'
import { type Conversation, createConversation } from './conversation.ts'
import { createOpening, speakerIn, speakFor, versionIn } from './opening.ts'
import { createPort } from './port.ts'

/** What `initialize` was answered with: as it came, and as a message. */
interface Opened {
  readonly text: string
  readonly message: Fields
}

/** Lines that are read while `initialize` is on its way. */
const MAX_AHEAD = 100
/** How long `initialize` may take once the input has ended, milliseconds. */
const DRAIN = 10_000

/** True for a refusal of the server's own: whatever else went wrong is not to be mended by another revision. */
const isRefused = ({ code, data }: Fields): boolean =>
  code !== -32_000 || !isObject(data) || typeof data['reason'] !== 'string' || data['reason'] === 'refused'

export function startTranslatedRelay(settings: RelaySettings, ends: { input: Readable; output: Writable }): Relay {
  const { url, note, timing } = settings
  const over = new AbortController()
  const output = createOutput(ends.output, { gone: () => end() })
  const input = new PassThrough()
  const port = createPort(text => input.write(`${text}\n`), MAX_LINE)
  /** `initialize` as the client said it, on its way. */
  const opening = new Map<Id, (opened: Opened) => void>()
  let conversation: Conversation | undefined

  const tell = (message: Fields) => output.respond(JSON.stringify({ jsonrpc: '2.0', ...message }))

  async function hear(text: string): Promise<void> {
    if (text === '') return
    const [message] = conversation || opening.size > 0 ? readMessages(text) : []
    const id = message && answeredId(message)
    const opened = id === undefined ? undefined : opening.get(id)
    if (message && opened) opened({ text, message })
    else if (!message || !(port.settle(message) || hearTranslated(message))) output.respond(text)
    await output.drained()
  }

  /** False for an answer to a line that went through as it was. */
  function hearTranslated(message: Fields): boolean {
    if (!conversation || message['method'] === undefined) return false
    conversation.hear(message)
    return true
  }

  // One write is one message: the relay's output writes them so.
  const fromServer = new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      hear(line.replace(/\n$/, '')).then(() => done(), done)
    },
  })
  const relay = startRelay(settings, { input, output: fromServer })

  const pass = (text: string) => void input.write(`${text}\n`)

  /** What the server is, where it refuses `initialize`; undefined where the refusal is what the client is to hear. */
  async function discover({ params }: Request) {
    const { answer } = port.request('server/discover', speakFor(speakerIn(params, MODERN_REVISION), {}))
    const { result } = await answer
    const version = isObject(result) ? versionIn(result) : undefined
    return isObject(result) && version ? createOpening(params, result, version, new URL(url).host) : undefined
  }

  async function open(request: Request, text: string): Promise<void> {
    const { id } = request
    conversation?.end()
    conversation = undefined
    const answered = new Promise<Opened>(resolve => opening.set(id, resolve))
    pass(text)
    try {
      const answer = await answered
      const { error } = answer.message
      const found = isObject(error) && isRefused(error) ? await discover(request) : undefined
      if (!found) return output.respond(answer.text)
      note(`the server speaks ${found.version} alone, the client ${found.revision}: what they say is translated`)
      conversation = createConversation(found, { port, timing, note, tell, signal: over.signal })
      tell({ id, result: found.initialized })
    } finally {
      opening.delete(id)
    }
  }

  async function read(line: Line): Promise<void> {
    const text = textOf(line)
    if (text.trim() === '') return
    const out = readOutgoing(text)
    const [first] = out.requests
    if (first && ownVersion(first) !== undefined) return pass(text)
    if (first?.method === 'initialize' && out.requests.length === 1) return open(first, text)
    if (!conversation) return pass(text)
    conversation.take(out)
  }

  function refuse(line: Line, thrown: unknown) {
    const failure = thrown instanceof Failure ? thrown : settings.explain(thrown)
    const [message] = 'text' in line ? readMessages(line.text) : []
    const id = message?.['id']
    const isRequest = typeof message?.['method'] === 'string' && (typeof id === 'string' || typeof id === 'number')
    output.respond(errorLine(isRequest ? (id as Id) : undefined, failure))
  }

  /** One line after the other; the end of the input is seen while `initialize` is on its way. */
  async function readAll() {
    let ahead = 0
    let done: Promise<unknown> = Promise.resolve()
    for await (const line of readLines(ends.input, MAX_LINE)) {
      if (over.signal.aborted) break
      const turn = ahead > 0 ? done.then(() => read(line)) : read(line)
      ahead++
      done = turn.catch(thrown => refuse(line, thrown)).then(() => ahead--)
      if (opening.size === 0 || ahead > MAX_AHEAD) await done
      if (input.writableNeedDrain) await Promise.race([once(input, 'drain'), once(input, 'close')])
      await output.drained()
    }
    await Promise.race([done, sleep(DRAIN, over.signal).catch(() => undefined)])
    conversation?.end()
    input.end()
  }

  function end() {
    over.abort(new Error('the relay ends'))
    relay.end()
    ends.input.destroy()
  }

  void readAll()
  const ended = relay.ended.then(async () => {
    over.abort(new Error('the relay has ended'))
    ends.input.destroy()
    await output.end()
  })
  return { ended, end }
}
