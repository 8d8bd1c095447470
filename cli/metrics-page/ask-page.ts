// The first look at a metrics page: where the address is of something else, its neighbours are asked, so that the error says
// where the metrics are.

import { printableUrl } from '../../client/printable.ts'
import { StartError } from '../../core/http/errors.ts'
import { fetchPage, NoMetricsError, type PageAddress } from './fetch-page.ts'
import type { MetricsPage } from './parse-page.ts'

/** Where the plugin `metrics` listens, by default. */
const PORT = 9464

/** Addresses of the same machine. They get no token: it was given for another one. */
function neighbours(url: string): string[] {
  const own = new URL('/metrics', url)
  const other = new URL('/metrics', url)
  other.protocol = 'http:'
  other.port = String(PORT)
  return [own.href, other.href].filter(address => address !== new URL(url).href)
}

/** As `fetchPage`; what it rejects with names the address. */
export async function askPage(address: PageAddress, signal?: AbortSignal): Promise<MetricsPage> {
  try {
    return await fetchPage(address, signal)
  } catch (cause) {
    if (!(cause instanceof StartError)) throw cause
    const said = `${printableUrl(address.url)}: ${cause.message}`
    if (!(cause instanceof NoMetricsError)) throw new StartError(said, { cause, exitCode: 1 })
    for (const url of neighbours(address.url)) {
      const found = await fetchPage({ url, token: undefined }, signal).catch(() => undefined)
      if (found) throw new NoMetricsError(`${said}. Its metrics are at ${printableUrl(url)}`, { cause, exitCode: 2 })
    }
    throw new NoMetricsError(said, { cause, exitCode: 2 })
  }
}
