// The first look at a metrics page: where the address is of something else, its neighbours are asked, so that the error says
// where the metrics are.

import { printableUrl } from '../../client/printable.ts'
import { StartError } from '../../core/http/errors.ts'
import { checkServerUrl } from '../client/logins.ts'
import { fetchPage, NoMetricsError, type PageAddress } from './fetch-page.ts'
import type { MetricsPage } from './parse-page.ts'

/** Where the plugin `metrics` listens, by default. */
const PORT = 9464
/** Milliseconds that a neighbour has for its answer. */
const SHORTLY = 2_000

const ELSEWHERE =
  'metrics are where the options of the plugin `metrics` say, by default at http://127.0.0.1:9464/metrics'

/** The address that a command line gives. Throws a StartError (exit code 2), which does not show a password. */
export function readPageUrl(given: string): string {
  const url = checkServerUrl(given)
  const { username, password } = new URL(url)
  if (username === '' && password === '') return url
  throw new StartError(
    'the URL has a user or a password in it, which is not sent: leave it out; a token goes by --token @file',
    {
      exitCode: 2,
    },
  )
}

/** Addresses of the same machine. They get no token: it was given for another one. */
function neighbours(url: string): string[] {
  const own = new URL('/metrics', url)
  const other = new URL('/metrics', url)
  other.protocol = 'http:'
  other.port = String(PORT)
  return [own.href, other.href].filter(address => address !== new URL(url).href)
}

async function findNear(given: string): Promise<string | undefined> {
  for (const url of neighbours(given)) {
    const page = await fetchPage({ url, token: undefined }, AbortSignal.timeout(SHORTLY)).catch(() => undefined)
    if (page) return url
  }
  return undefined
}

/** As `fetchPage`; what it rejects with names the address. */
export async function askPage(address: PageAddress, signal?: AbortSignal): Promise<MetricsPage> {
  try {
    return await fetchPage(address, signal)
  } catch (cause) {
    if (!(cause instanceof StartError)) throw cause
    const named = printableUrl(address.url)
    if (!(cause instanceof NoMetricsError)) throw new StartError(`${named}: ${cause.message}`, { cause, exitCode: 1 })
    const found = await findNear(address.url)
    // Where the metrics are elsewhere, no token helps here.
    const told = found
      ? `${cause.said}; metrics are at ${printableUrl(found)}`
      : `${cause.message}${cause.fix === undefined ? `; ${ELSEWHERE}` : ''}`
    throw new NoMetricsError(`${named}: ${told}`, { cause })
  }
}
