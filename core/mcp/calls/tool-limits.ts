// Tool limits: call time, concurrency and isolation. The stricter of definition and `tools.limits` applies.
import type { Clock } from '../../http/clock.ts'
import { type Report, StartError } from '../../http/errors.ts'
import { getOrCreate } from '../../http/get-or-create.ts'
import { LinkedList } from '../../http/linked-list.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { CatalogItem, ToolItem } from '../definitions/catalog.ts'
import {
  describeIsolationLimits,
  type IsolationLimits,
  isolateError,
  isPluginTool,
  stricterLimits,
} from '../definitions/isolation-limits.ts'
import { matchesGlob } from '../glob.ts'
import { nearest } from '../nearest.ts'
import { CallQueue } from './call-queue.ts'

interface LimitRule {
  readonly glob: string
  /** Milliseconds. */
  readonly timeout: number | undefined
  readonly concurrency: number | undefined
  readonly isolate: IsolationLimits | undefined
}

export interface ItemLimits {
  /** Milliseconds; undefined: no limit. */
  readonly timeout: number | undefined
  readonly queue: CallQueue | undefined
  readonly isolate: IsolationLimits | undefined
}

export type ToolLimits = ReturnType<typeof createToolLimits>

interface ToolLimitsSettings {
  readonly rules: readonly LimitRule[]
  readonly callTimeout: number | undefined
  readonly metrics: Pick<Metrics, 'gauge' | 'counter'>
  readonly clock: Clock
}

const BUSY = {
  name: 'mcp_host_tool_calls',
  help: 'Running and queued calls of tools with a concurrency limit.',
  labels: ['tool', 'state'],
}

function* countBusy(busy: Iterable<CallQueue>) {
  for (const { facts, running, waiting } of busy) {
    yield [running, { tool: facts.tool, state: 'running' }] as const
    yield [waiting, { tool: facts.tool, state: 'waiting' }] as const
  }
}

const minimum = (values: ReadonlyArray<number | undefined>): number | undefined => {
  const numbers = values.filter(value => value !== undefined)
  return numbers.length === 0 ? undefined : Math.min(...numbers)
}

function checkRules(rules: readonly LimitRule[], names: readonly string[], isWhole: boolean, report: Report) {
  for (const { glob } of rules) {
    if (names.some(name => matchesGlob(glob, name))) continue
    const near = nearest(glob.replaceAll('*', ''), names)
    if (near === undefined && !isWhole) continue
    const hint = near === undefined ? '' : `; did you mean "${near}"?`
    const what = `these limits match no tool that is defined at startup${hint}`
    report(new StartError('MH1113', what, { at: ['tools', 'limits', glob] }), 'warning')
  }
}

function isolationProblem({ key, definition }: ToolItem, [rule]: readonly LimitRule[]): StartError | undefined {
  const fault = rule && isolateError(definition)
  if (fault === undefined) return undefined
  return new StartError('MH1111', `"${key}" cannot be isolated: ${fault}`, {
    at: ['tools', 'limits', rule?.glob ?? '', 'isolate'],
  })
}

export function createToolLimits({ rules, callTimeout, metrics, clock }: ToolLimitsSettings) {
  const defaults: ItemLimits = { timeout: callTimeout, queue: undefined, isolate: undefined }
  const known = new WeakMap<ToolItem, ItemLimits>()
  const busy = new LinkedList<CallQueue>()
  const refused = metrics.counter({
    name: 'mcp_host_tool_calls_refused_total',
    help: 'Calls refused because the queue of the tool was full.',
    labels: ['tool'],
  })
  metrics.gauge(BUSY, () => countBusy(busy))
  const matching = ({ key }: ToolItem) => rules.filter(({ glob }) => matchesGlob(glob, key))
  const isolating = (tool: ToolItem) =>
    isPluginTool(tool.definition) ? [] : matching(tool).filter(({ isolate }) => isolate !== undefined)

  function limitsOf(tool: ToolItem): ItemLimits {
    const matched = matching(tool)
    const timeout = minimum([tool.timeout ?? callTimeout, ...matched.map(rule => rule.timeout)])
    const isolate = isolating(tool)
      .map(rule => rule.isolate)
      .reduce(stricterLimits, tool.isolate)
    // This queue is fair between callers, unlike the queue for worker processes.
    const most = minimum([tool.concurrency, isolate?.processes, ...matched.map(rule => rule.concurrency)])
    const labels = { tool: tool.key }
    const facts = { tool: tool.key, most: most ?? 0, timeout, clock }
    const queue = most === undefined ? undefined : new CallQueue(facts, busy, () => refused(1, labels))
    return { timeout, queue, isolate }
  }

  /** Returns one object per item. A new version of a tool has a new object. */
  function of(item: CatalogItem): ItemLimits {
    if (item.kind !== 'tools') return defaults
    const hasOwn = item.timeout !== undefined || item.concurrency !== undefined || item.isolate !== undefined
    if (rules.length === 0 && !hasOwn) return defaults
    return getOrCreate(known, item, limitsOf)
  }

  return {
    of,
    describe(item: CatalogItem): string[] {
      const { timeout, queue, isolate } = of(item)
      if (item.kind !== 'tools') return []
      const globs = matching(item).map(({ glob }) => JSON.stringify(glob))
      const by = globs.length === 0 ? '' : ` (tools.limits ${globs.join(', ')})`
      return [
        ...(timeout === undefined ? [] : [`a call can take ${timeout} ms, including its time in the queue${by}`]),
        ...(queue ? [`at most ${queue.facts.most} at once in one process, further calls are queued${by}`] : []),
        ...(isolate
          ? [`runs in a worker process: ${Object.values(describeIsolationLimits(isolate)).join(', ')}${by}`]
          : []),
      ]
    },
    faultOf: (item: CatalogItem) => (item.kind === 'tools' ? isolationProblem(item, isolating(item)) : undefined),
    /** Warns about rules that match none of these tools. `isWhole`: sessions add no other tools. */
    check: (names: readonly string[], isWhole: boolean, report: Report) => checkRules(rules, names, isWhole, report),
  }
}
