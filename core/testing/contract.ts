// What the contracts of all slots are made of: named checks, each on services that know nothing yet.
import { AssertionError } from 'node:assert'
import { inspect, isDeepStrictEqual } from 'node:util'

/** One promise of an interface: `it(name, run)` in mocha, vitest and node:test. */
export interface Check {
  readonly name: string
  /** Rejects with an AssertionError where the promise is not kept. */
  run(): Promise<void>
}

/** Services that a check is run on. */
export interface Opened<Service> {
  /** The same service as each of so many nodes has it. */
  readonly nodes: readonly Service[]
  /** Called once the check is over. */
  close?(): void | Promise<void>
}

/** What a contract is run against. */
export interface ContractSettings<Service> {
  /** Whether it is for several nodes. Then there are more checks, and those need two. */
  readonly shared: boolean
  /** Begins a service that knows nothing, on as many nodes; called for each check anew. */
  open(nodes: number): Opened<Service> | Promise<Opened<Service>>
}

/** What one node sees, and what two nodes see of each other. */
export interface Promises<Service> {
  readonly alone: Readonly<Record<string, (service: Service, expiry: Expiry) => Promise<void>>>
  readonly together: Readonly<Record<string, (one: Service, other: Service) => Promise<void>>>
}

/** A time to live that expires during a check. */
export interface Expiry {
  readonly ms: number
  /**
   * Starts the time, and returns what awaits the steps that must be done before its end. If one is not, the machine is too slow
   * for this time: the check proves nothing, and runs again on a new service with twice the time.
   */
  start(): <Value>(step: Value | Promise<Value>) => Promise<Value>
  /** Waits until `holds`, or for some seconds longer than the time. */
  wait(holds: () => boolean | Promise<boolean>): Promise<void>
}

const FIRST_EXPIRY = 800
const LAST_EXPIRY = 16 * FIRST_EXPIRY

class TooSlow extends Error {}

const expiryOf = (ms: number): Expiry => ({
  ms,
  start() {
    const end = performance.now() + ms
    return async step => {
      const [outcome] = await Promise.allSettled([step])
      if (performance.now() >= end) throw new TooSlow(`the service took more than ${ms} ms`)
      if (outcome.status === 'rejected') throw outcome.reason
      return outcome.value
    }
  },
  wait: holds => eventually(holds, ms + PATIENCE),
})

export function checksOf<Service>(
  { shared, open }: ContractSettings<Service>,
  { alone, together }: Promises<Service>,
): readonly Check[] {
  type Act = (nodes: readonly Service[], expiry: Expiry) => Promise<void>
  const runOn = async (count: number, act: Act, expiry: Expiry) => {
    const { nodes, close } = await open(count)
    try {
      if (nodes.length < count) throw new Error(`open(${count}) gave ${nodes.length} nodes`)
      await act(nodes, expiry)
    } finally {
      await close?.()
    }
  }
  const check = (name: string, count: number, act: Act): Check => ({
    name,
    async run() {
      for (let ms = FIRST_EXPIRY; ; ms *= 2) {
        try {
          return await runOn(count, act, expiryOf(ms))
        } catch (error) {
          if (!(error instanceof TooSlow) || ms >= LAST_EXPIRY) throw error
        }
      }
    },
  })
  return [
    ...Object.entries(alone).map(([name, act]) => check(name, 1, ([one], expiry) => act(one as Service, expiry))),
    ...Object.entries(shared ? together : {}).map(([name, act]) =>
      check(`two nodes: ${name}`, 2, ([one, other]) => act(one as Service, other as Service)),
    ),
  ]
}

/** Throws, in words, where a service gave something else: its author sees no more of a check than what it throws. */
export function same(actual: unknown, expected: unknown, promise: string): void {
  if (isDeepStrictEqual(actual, expected)) return
  const message = `${promise}: expected ${inspect(expected, { depth: 6 })}, found ${inspect(actual, { depth: 6 })}`
  throw new AssertionError({ message, actual, expected, operator: 'deepStrictEqual' })
}

/** Throws, in words, where this is not so. */
export function holds(kept: unknown, promise: string): asserts kept {
  if (!kept) throw new AssertionError({ message: promise, actual: kept, expected: true, operator: 'ok' })
}

export const pause = (milliseconds: number) => new Promise<void>(resolve => setTimeout(resolve, milliseconds))

/** How long is waited for what a service does not let its caller wait for, milliseconds. */
const PATIENCE = 5_000

/** Until `holds`, or for five seconds: what follows says then what is not as it should be. */
export async function eventually(holds: () => boolean | Promise<boolean>, patience = PATIENCE): Promise<void> {
  const end = performance.now() + patience
  while (!(await holds()) && performance.now() < end) await pause(10)
}
