// Runs named checks of slot contracts, each on new services.

/** One check, as `it(name, run)` in mocha, vitest and node:test. */
export interface Check {
  readonly name: string
  run(): Promise<void>
}

/** Services for one check. */
export interface Opened<Service> {
  readonly nodes: readonly Service[]
  close?(): void | Promise<void>
}

/** The services under test. */
export interface ContractSettings<Service> {
  /** True for several nodes: enables additional checks, which need two nodes. */
  readonly shared: boolean
  /** Opens a new service on this number of nodes, for each check. */
  open(nodes: number): Opened<Service> | Promise<Opened<Service>>
}

export interface Contract<Service> {
  readonly oneNode: Readonly<Record<string, (service: Service, expiry: Expiry) => Promise<void>>>
  readonly twoNodes: Readonly<Record<string, (one: Service, other: Service) => Promise<void>>>
}

export interface Expiry {
  readonly ms: number
  /** Starts the time. The returned function awaits steps. A late step repeats the check with twice the time. */
  start(): <Value>(step: Value | Promise<Value>) => Promise<Value>
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
  wait: holds => eventually(holds, ms + TIMEOUT),
})

export function checksOf<Service>(
  { shared, open }: ContractSettings<Service>,
  { oneNode, twoNodes }: Contract<Service>,
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
    ...Object.entries(oneNode).map(([name, act]) => check(name, 1, ([one], expiry) => act(one as Service, expiry))),
    ...Object.entries(shared ? twoNodes : {}).map(([name, act]) =>
      check(`two nodes: ${name}`, 2, ([one, other]) => act(one as Service, other as Service)),
    ),
  ]
}

export const pause = (milliseconds: number) => new Promise<void>(resolve => setTimeout(resolve, milliseconds))

/** Default wait for asynchronous effects, milliseconds. */
const TIMEOUT = 5_000

/** Waits until `holds`, or for five seconds. Later assertions report the failure. */
export async function eventually(holds: () => boolean | Promise<boolean>, timeout = TIMEOUT): Promise<void> {
  const end = performance.now() + timeout
  while (!(await holds()) && performance.now() < end) await pause(10)
}
