// Reads the document of a toolset: its tools, and the left-out operations with the reasons. The document itself is not
// kept, because it can be large.
import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { serialize } from 'node:v8'
import { didYouMean } from '../../core/internal.ts'
import { parseSize } from '../../core/plugin.ts'
import { createApi, listCandidates } from './api.ts'
import { createDocuments, type Load, LoadError, MAX_DOCUMENT, parseDocument } from './document/load.ts'
import { applyOverlay } from './document/overlay.ts'
import { DocumentError, type DocumentFile, MissingDocument, withLocation } from './document/place.ts'
import { createNames } from './names.ts'
import type { Source } from './options.ts'
import { type ApiTool, readTool } from './read-tool.ts'
import {
  candidateNames,
  findOverrideKey,
  isRestricting,
  skipReason,
  unknownOverrides,
  unmatchedFilters,
} from './select.ts'
import { createTrust, listOrigins } from './servers.ts'

interface LeftOut {
  /** The operationId, or the method and path. */
  readonly id: string
  readonly reason: string
}

type ApiReading = Awaited<ReturnType<typeof readApi>>

export interface ReadSettings {
  /** The base folder of relative paths. */
  readonly directory: string
  readonly load: Load
  /** The contents of the main document, if it is loaded. */
  readonly main?: Uint8Array
}

/** Reads a document. Throws a LoadError or a DocumentError if the document cannot be used at all. */
export async function readApi(source: Source, settings: ReadSettings) {
  const maxSchema = parseSize(source.maxSchema)
  const url = urlOf(source.document, settings)
  let file = parseDocument(url, source.document, settings.main ?? (await loadMain(source, settings)))
  let origins = isFile(file) ? undefined : new Set([url.origin])
  for (const name of [source.overlay ?? []].flat()) {
    const at = urlOf(name, settings)
    const overlay = parseDocument(at, name, await settings.load(at, name, MAX_DOCUMENT))
    if (!isFile(overlay)) origins ??= listOrigins(file, source)
    file = await applyOverlay(overlay, file)
  }
  const documents = createDocuments(file, settings.load)
  const retrying = async <Value>(read: () => Value): Promise<Value> => {
    for (;;) {
      try {
        return read()
      } catch (error) {
        if (!(error instanceof MissingDocument)) throw error
        await documents.add(error)
      }
    }
  }
  const trusts = createTrust(origins, source)
  const api = await retrying(() => createApi(documents, trusts))
  const { candidates, faults } = await retrying(() => listCandidates(api))
  const nameOf = createNames(candidates, source.prefix)
  const reading = {
    api,
    /** Origins that can receive credentials; undefined: all. */
    origins,
    candidates,
    tools: [] as ApiTool[],
    /** Operations left out by options. */
    skipped: [] as LeftOut[],
    /** Operations left out because of faults in the document, with file, line and pointer. */
    faulty: faults.map(error => ({ id: '', reason: withLocation(error.place, error.fault) })),
  }
  for (const candidate of candidates) {
    const reason = skipReason(candidate, source)
    if (reason !== undefined) {
      reading.skipped.push({ id: candidate.id, reason })
      continue
    }
    const own = source.overrides?.[findOverrideKey(candidate, source) ?? '']?.name
    const name = own === undefined ? nameOf(candidate) : `${source.prefix}${own}`
    try {
      reading.tools.push(await retrying(() => readTool(api, candidate, source, name, maxSchema)))
    } catch (error) {
      if (!(error instanceof DocumentError)) throw error
      reading.faulty.push({ id: candidate.id, reason: withLocation(error.place, error.fault) })
    }
  }
  return reading
}

const isFile = ({ url }: DocumentFile): boolean => url.protocol === 'file:'

export const loadMain = (source: Source, settings: ReadSettings): Promise<Uint8Array> =>
  settings.load(urlOf(source.document, settings), source.document, MAX_DOCUMENT)

const urlOf = (name: string, { directory }: ReadSettings): URL =>
  /^https?:\/\//.test(name) ? new URL(name) : pathToFileURL(resolve(directory, name))

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
    text: `there is no such operation; ${didYouMean(name, candidates.flatMap(candidateNames))}`,
    isRestricting: isRestricting(source.overrides?.[name]),
  }))
  const unknownInTools = tools.flatMap(({ unknownArguments, operation, override = '' }) =>
    unknownArguments.map(name => ({
      at: ['overrides'],
      text: `${operation.id} has no argument "${name}"`,
      isRestricting: 'value' in (source.overrides?.[override]?.arguments?.[name] ?? {}),
    })),
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
    notes: [...api.notes.values()].map(({ place, text }) => withLocation(place, text)),
    /** Filters without a match. `at`: relative to the options of the document. */
    unmatched: unmatchedFilters(candidates, source),
  }
}

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
    return { code: 'MH3402', text: withLocation(error.place, error.fault) }
  }
}
