// The tool `puppet` on node processes, which the test controls over IPC. The part in the node is a plugin of its
// config, because each node changes its own definitions.
import { EventEmitter } from 'node:events'
import { type CallContext, defineTool, type LogLevel, type RuntimeHost } from '../../../core/index.ts'
import { definePlugin } from '../../../core/internal.ts'
import { added } from '../../fixtures/session-toolset.ts'
import { createGate, type Gate } from '../../support/gate.ts'
import type { Puppet, PuppetCall } from '../../support/puppet-tool.ts'
import type { NodeProcess } from './node-process.ts'

/** What a test tells a node: of one call of the puppet, or of its tools. */
type Order =
  | { readonly to: string; readonly act: 'progress'; readonly args: [number, number?] }
  | { readonly to: string; readonly act: 'log'; readonly args: [LogLevel, unknown, string?] }
  | { readonly to: string; readonly act: 'finish'; readonly args: [string] }
  | { readonly order: number; readonly tool: 'add' | 'remove' }

/** What a node tells the test. */
type Report =
  | { readonly begun: string }
  | { readonly aborted: string }
  | { readonly wanted: number }
  | { readonly done: number }

interface RunningCall {
  readonly ctx: CallContext
  finish(text: string): void
}

const report = (message: Report) => void process.send?.(message)

/** The node's half: the tools, and a plugin that listens. */
export function createNodeHalf() {
  const calls = new Map<string, RunningCall>()
  const wanted = new Map<number, () => void>()
  let lastWanted = 0

  function obey(order: Order, runtime: RuntimeHost) {
    if ('tool' in order) {
      runtime.tools.remove('added')
      if (order.tool === 'add') runtime.tools.add(added)
      return report({ done: order.order })
    }
    const call = calls.get(order.to)
    if (order.act === 'progress') call?.ctx.progress(...order.args)
    else if (order.act === 'log') call?.ctx.log(...order.args)
    else call?.finish(...order.args)
  }

  const puppet = defineTool({
    name: 'puppet',
    input: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    handler: ({ name }, ctx) =>
      new Promise<string>((finish, reject) => {
        calls.set(name, { ctx, finish })
        const abort = () => {
          report({ aborted: name })
          reject(ctx.signal.reason)
        }
        ctx.signal.addEventListener('abort', abort, { once: true })
        report({ begun: name })
      }),
  })

  /** Done when every node has the tool. */
  const addTool = defineTool({
    name: 'add_tool',
    handler: () =>
      new Promise<string>(resolve => {
        wanted.set(++lastWanted, () => resolve('done'))
        report({ wanted: lastWanted })
      }),
  })

  const strings = definePlugin<Record<never, never>>({
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup(host) {
      host.onReady(() => {
        const { runtime } = host.services
        process.on('message', (message: Order | { readonly given: number }) => {
          if ('given' in message) wanted.get(message.given)?.()
          else obey(message, runtime)
        })
        process.channel?.unref()
      })
    },
  })
  return { puppet, addTool, strings: strings() }
}

export interface RemotePuppet extends Pick<Puppet, 'call'> {
  /** Calls of names that were there before are others from now on. */
  forget(): void
}

/** The test's half. */
export function createRemotePuppet(nodes: readonly NodeProcess[]): RemotePuppet {
  const begun = new Map<string, Gate<PuppetCall>>()
  const aborting = new Map<string, AbortController>()
  const events = new EventEmitter()
  let orders = 0

  function gateOf(name: string): Gate<PuppetCall> {
    const gate = begun.get(name) ?? createGate<PuppetCall>()
    begun.set(name, gate)
    return gate
  }

  /** Resolves when every node did it. */
  async function orderAll(tool: 'add' | 'remove') {
    const order = ++orders
    let open = nodes.length
    const done = createGate()
    events.on(`done ${order}`, () => {
      if (--open === 0) done.open()
    })
    for (const node of nodes) node.tell({ order, tool } satisfies Order)
    await done.opened
  }

  function openCall(name: string, node: NodeProcess) {
    const controller = new AbortController()
    aborting.set(name, controller)
    const tell = (order: Order) => node.tell(order)
    const ctx = {
      signal: controller.signal,
      progress: (...args: [number, number?]) => tell({ to: name, act: 'progress', args }),
      log: (...args: [LogLevel, unknown, string?]) => tell({ to: name, act: 'log', args }),
      host: { tools: { remove: () => void orderAll('remove') } },
    }
    const finish = (text: string) => tell({ to: name, act: 'finish', args: [text] })
    gateOf(name).open({ ctx: ctx as unknown as CallContext, finish })
  }

  for (const node of nodes) {
    node.heard(message => {
      const said = message as Report
      if ('begun' in said) openCall(said.begun, node)
      else if ('aborted' in said) aborting.get(said.aborted)?.abort()
      else if ('done' in said) events.emit(`done ${said.done}`)
      else void orderAll('add').then(() => node.tell({ given: said.wanted }))
    })
  }
  return {
    call: name => gateOf(name).opened,
    forget() {
      begun.clear()
      aborting.clear()
    },
  }
}
