// A tool whose handler the test controls step by step.
import { type CallContext, defineTool, type ToolDefinition } from '../../core/index.ts'
import { createGate, type Gate } from './gate.ts'

export interface PuppetCall {
  readonly ctx: CallContext
  /** Ends the handler with this text. */
  finish(text: string): void
}

export interface Puppet {
  readonly tool: ToolDefinition
  /** Resolves with the call of this name once its handler runs. */
  call(name: string): Promise<PuppetCall>
}

export function createPuppet(): Puppet {
  const begun = new Map<string, Gate<PuppetCall>>()

  function gateOf(name: string): Gate<PuppetCall> {
    const gate = begun.get(name) ?? createGate<PuppetCall>()
    begun.set(name, gate)
    return gate
  }

  return {
    tool: defineTool({
      name: 'puppet',
      input: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      handler: ({ name }, ctx) =>
        new Promise<string>((finish, reject) => {
          ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason), { once: true })
          gateOf(name).open({ ctx, finish })
        }),
    }),
    call: name => gateOf(name).opened,
  }
}
