// A tool whose handler does what the test says, when it says so.
import { type CallContext, defineTool, type ToolDefinition } from '../../core/index.ts'

export interface PuppetCall {
  readonly ctx: CallContext
  /** Ends the handler with this text. */
  finish(text: string): void
}

export interface Puppet {
  readonly tool: ToolDefinition
  /** The call that names itself so, once its handler runs. */
  call(name: string): Promise<PuppetCall>
}

export function createPuppet(): Puppet {
  const waiting = new Map<string, { promise: Promise<PuppetCall>; resolve: (call: PuppetCall) => void }>()

  function expected(name: string) {
    const known = waiting.get(name)
    if (known) return known
    let resolve: (call: PuppetCall) => void = () => {}
    const promise = new Promise<PuppetCall>(done => {
      resolve = done
    })
    const entry = { promise, resolve }
    waiting.set(name, entry)
    return entry
  }

  return {
    tool: defineTool({
      name: 'puppet',
      input: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      handler: ({ name }, ctx) =>
        new Promise<string>((finish, reject) => {
          ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason), { once: true })
          expected(name).resolve({ ctx, finish })
        }),
    }),
    call: name => expected(name).promise,
  }
}
