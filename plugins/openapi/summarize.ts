// Reads a document and summarizes it as plain data. The document itself is not kept, because it can be large.
import { createHash } from 'node:crypto'
import { serialize } from 'node:v8'
import { didYouMean } from '../../core/internal.ts'
import { LoadError } from './document/load.ts'
import { DocumentError, located } from './document/place.ts'
import type { Source } from './options.ts'
import { type ApiReading, type ReadSettings, readApi } from './read-api.ts'
import { namesOf, unknownOverrides, unmatchedFilters } from './select.ts'

/** The parts of a document that stay in memory. `digest`: SHA-256 of the other parts, for fast comparison. */
export type ReadDocument = ReturnType<typeof summarize> & { readonly digest: string }

/** The reason why a document cannot be used. */
export interface ReadFailure {
  readonly code: 'MH3401' | 'MH3402'
  readonly text: string
}

function summarize({ api, origins, candidates, tools, faulty }: ApiReading, source: Source) {
  const unknownNames = unknownOverrides(candidates, source).map(name => ({
    at: ['overrides', name],
    text: `there is no such operation; ${didYouMean(name, candidates.flatMap(namesOf))}`,
  }))
  const unknownInTools = tools.flatMap(({ unknownArguments, operation }) =>
    unknownArguments.map(name => ({ at: ['overrides'], text: `${operation.id} has no argument "${name}"` })),
  )
  return {
    tools,
    securitySchemes: api.securitySchemes,
    origins,
    /** Keys of `overrides` that match no operation or argument. `at`: relative to the options of the document. */
    unknownKeys: [...unknownNames, ...unknownInTools],
    /** Left-out operations with the reasons. */
    faults: faulty.map(({ reason }) => `left out: ${reason}`),
    /** Ignored or replaced invalid parts of the document. */
    notes: [
      ...[...api.notes.values()].map(({ place, text }) => located(place, text)),
      ...unmatchedFilters(candidates, source).map(at => `\`${at}\` matches no operation`),
    ],
  }
}

/** A serialized ReadDocument. */
export interface Summary {
  readonly bytes: Uint8Array
  readonly digest: string
}

export async function readSummary(source: Source, settings: ReadSettings): Promise<Summary | ReadFailure> {
  try {
    const bytes = serialize(summarize(await readApi(source, settings), source))
    return { bytes, digest: createHash('sha256').update(bytes).digest('hex') }
  } catch (error) {
    if (error instanceof LoadError) return { code: 'MH3401', text: error.message }
    if (!(error instanceof DocumentError)) throw error
    return { code: 'MH3402', text: located(error.place, error.fault) }
  }
}
