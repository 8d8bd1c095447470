// A host with the metrics plugin, and what a reader of its metrics gets.
import type { Config } from '../../../core/index.ts'
import { type StartedHost, type StartOptions, startHost, type TestConfig } from '../../support/start-host.ts'

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const unescaped = (text: string) => text.replace(/\\(.)/g, (_, sign) => (sign === 'n' ? '\n' : sign))

/** The samples of the text format. */
export function samplesIn(text: string): Sample[] {
  return text.split('\n').flatMap(line => {
    const [, name, labels = '', value] = /^([\w:]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (name === undefined || line.startsWith('#')) return []
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text = '']) => [key, unescaped(text)])
    return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }]
  })
}

export interface Metered extends StartedHost {
  /** Where the metrics are, on their own port. */
  readonly address: string
  scrape(): Promise<Sample[]>
  /** The only sample of that name with these labels among its own; undefined: none. Throws where there are several. */
  one(name: string, labels?: Record<string, string>): Promise<number | undefined>
}

const fits = (wanted: Record<string, string>) => (sample: Sample) =>
  Object.entries(wanted).every(([key, value]) => sample.labels[key] === value)

export async function scrapeOf(address: string, headers: Record<string, string> = {}): Promise<Sample[]> {
  const answer = await fetch(address, { headers })
  if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`)
  return samplesIn(await answer.text())
}

export async function startMetered(
  config: TestConfig,
  options: NonNullable<Config['plugins']>[string] & object = {},
  more: StartOptions = {},
): Promise<Metered> {
  const plugins = { 'transport-streamable': {}, ...config.plugins, metrics: { port: 0, process: false, ...options } }
  const started = await startHost({ ...config, plugins }, undefined, more)
  const address = String(started.log.find(({ message }) => message === 'serving metrics')?.['url'])
  const scrape = () => scrapeOf(address)
  return {
    ...started,
    address,
    scrape,
    async one(name, labels = {}) {
      const found = (await scrape()).filter(sample => sample.name === name).filter(fits(labels))
      if (found.length > 1) throw new Error(`${found.length} samples of ${name} ${JSON.stringify(labels)}`)
      return found[0]?.value
    },
  }
}
