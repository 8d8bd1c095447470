// Looks for secrets in everything that a program might print or keep of the client: errors with their causes, events,
// the client itself, and the console.
import { inspect } from 'node:util'
import { expect } from 'chai'

/** Every way that a value is shown: as text, inspected with hidden properties, as JSON, and its causes likewise. */
export function renderingsOf(value: unknown): string[] {
  const texts = [String(value), inspect(value, { depth: 12, showHidden: true, getters: true })]
  try {
    texts.push(JSON.stringify(value) ?? '')
  } catch {
    // A ring is not serializable; `inspect` has shown it.
  }
  if (value instanceof Error) {
    texts.push(value.stack ?? '', value.message)
    const own = Object.getOwnPropertyNames(value).map(name => (value as unknown as Record<string, unknown>)[name])
    texts.push(...own.map(one => inspect(one, { depth: 12, showHidden: true })))
    if (value.cause !== undefined) texts.push(...renderingsOf(value.cause))
  }
  return texts
}

const METHODS = ['log', 'info', 'warn', 'error', 'debug', 'trace'] as const

/** Keeps what is written to the console while `work` runs. */
export async function consoleDuring(work: () => Promise<void>): Promise<string[]> {
  const written: string[] = []
  const originals = METHODS.map(method => console[method])
  for (const method of METHODS)
    console[method] = (...parts: unknown[]) => void written.push(parts.map(String).join(' '))
  try {
    await work()
  } finally {
    METHODS.forEach((method, index) => {
      const original = originals[index]
      if (original) console[method] = original
    })
  }
  return written
}

/** As a server could write a secret back. */
const spellings = (secret: string): string[] => [
  ...new Set([secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')]),
]

/** Fails when one of the secrets is in one of the texts; returns how many pairs were looked at. */
export function expectNoSecret(texts: readonly string[], secrets: readonly string[]): number {
  for (const secret of secrets) {
    const found = texts.find(text => spellings(secret).some(spelling => text.includes(spelling)))
    expect(found, `"${secret}" is shown`).to.equal(undefined)
  }
  return texts.length * secrets.length
}
