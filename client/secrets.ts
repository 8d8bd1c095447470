// The secrets that the client has seen, so that no text which a server echoes can carry one into a message or a log.

/** As many are kept; the oldest go first. Adding one again makes it the newest. */
const MAX_SECRETS = 500

const REDACTED = '[redacted]'

export interface Secrets {
  /** Call it as soon as a secret is known, and again at each use. Undefined and empty values are ignored. */
  add(...values: (string | undefined)[]): void
  /** The text with every known secret replaced, also where it is written in form, URL or JSON encoding. */
  scrub(text: string): string
}

const formEncoded = (value: string): string => new URLSearchParams([['', value]]).toString().slice(1)
/** From the form encoding, which does not throw for half a surrogate pair. */
const urlEncoded = (value: string): string => formEncoded(value).replaceAll('+', '%20')
const jsonEncoded = (value: string): string => JSON.stringify(value).slice(1, -1)

/** How a server may write the value back, the longest first. */
function spellings(value: string): string[] {
  const json = jsonEncoded(value)
  const all = new Set([value, formEncoded(value), urlEncoded(value), json, json.replaceAll('/', '\\/')])
  return [...all].sort((one, other) => other.length - one.length)
}

/** Keeps the values in a closure: nothing that prints or serializes the object shows them. */
export function createSecrets(): Secrets {
  const known = new Map<string, readonly string[]>()
  return {
    add(...values) {
      for (const value of values) {
        if (!value) continue
        const written = known.get(value) ?? spellings(value)
        known.delete(value)
        known.set(value, written)
        const [oldest] = known.keys()
        if (known.size > MAX_SECRETS && oldest !== undefined) known.delete(oldest)
      }
    },
    scrub(text) {
      // The longest first: a secret that begins with another one must not leave its end behind.
      const written = [...known.values()].flat().sort((one, other) => other.length - one.length)
      return written.reduce((left, spelling) => left.replaceAll(spelling, REDACTED), text)
    },
  }
}
