// A port that somebody else has, as another `mcp-host dev`: waited for, so that serving begins once it is free.
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { isError } from '../../core/http/describe-thrown.ts'

/** How often it is tried, milliseconds. */
const PAUSE = 2_000

interface Address {
  readonly address: string
  readonly port: number
}

/** Where a start could not listen, because somebody else does; undefined for any other error. */
export function takenBy(error: unknown): Address | undefined {
  const cause = (isError(error) ? error.cause : undefined) as (NodeJS.ErrnoException & Partial<Address>) | undefined
  const { code, address, port } = cause ?? {}
  return code === 'EADDRINUSE' && address !== undefined && port !== undefined ? { address, port } : undefined
}

const isFree = ({ address, port }: Address): Promise<boolean> =>
  new Promise(resolve => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen({ host: address, port, exclusive: true }, () => probe.close(() => resolve(true)))
  })

/** Resolves once nobody listens there. */
export async function untilFree(address: Address, pause = PAUSE): Promise<void> {
  do await delay(pause)
  while (!(await isFree(address)))
}
