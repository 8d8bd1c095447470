// A session's record as fields of a hash, and back. For store.ts; scripts.ts has the list of fields.
import type { LogLevel, Revision } from '../../core/index.ts'
import { type SessionRecord, watchedCost } from '../../core/transport.ts'

export type Fields = ReadonlyMap<string, string>

/** Fields and values by turns. */
export function fieldsOf(flat: readonly string[]): Fields {
  const fields = new Map<string, string>()
  for (let index = 0; index < flat.length; index += 2) fields.set(flat[index] ?? '', flat[index + 1] ?? '')
  return fields
}

/** What of the fields' names comes after this. */
export const namesAfter = (prefix: string, fields: Fields): string[] =>
  [...fields.keys()].flatMap(name => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []))

export function readRecord(fields: Fields): SessionRecord {
  const text = (name: string) => fields.get(name) ?? ''
  return {
    opening: JSON.parse(text('opening')),
    version: Number(text('v')),
    home: text('home'),
    state: {
      revision: (text('revision') || undefined) as Revision | undefined,
      client: { info: undefined, ...JSON.parse(text('client')) },
      logLevel: text('level') as LogLevel,
      watched: namesAfter('w:', fields),
    },
  }
}

/** Fields and values by turns. */
export function writeRecord({ opening, version, home, state }: SessionRecord): string[] {
  const { revision = '', client, logLevel, watched } = state
  return [
    ...['opening', JSON.stringify(opening), 'home', home, 'v', String(version)],
    ...['revision', revision, 'client', JSON.stringify(client), 'level', logLevel],
    ...['wn', String(watched.length), 'wb', String(watchedCost(watched)), ...watched.flatMap(uri => [`w:${uri}`, '1'])],
  ]
}
